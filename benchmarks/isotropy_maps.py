"""Maps that `isotropy.py` fits and measures, one behind the other."""

import copy

import torch

from counterpoint.transform import FlowTraining, Glow, Nice, Whitening
from counterpoint.vectors import Vectors

BLOCK = 65_536  # rows read at a time


class Chain:
    """Maps one after the other, or none; NICE's networks in bfloat16 if that is wished."""

    def __init__(self, steps=(), bfloat16=False):
        self.steps = list(steps)
        self.bfloat16 = bfloat16

    def fit(self, rows):
        for step in self.steps:
            with self.precision(step):
                step.fit(rows.split(BLOCK))
            rows = self.apply(step, rows)
        return self

    def centred_on(self, rows):
        """The same maps about the mean of these rows; flows come behind a rotation, which has it."""
        first = copy.deepcopy(self.steps[0]).recentre(rows.split(BLOCK))
        return Chain([first, *self.steps[1:]], self.bfloat16)

    def __call__(self, rows):
        for step in self.steps:
            rows = self.apply(step, rows)
        return rows

    def apply(self, step, rows):
        with self.precision(step):
            return apply(step, rows).float()

    def precision(self, step):
        """The one that a map is fitted and applied in; additions and scales stay in float32."""
        return torch.autocast("cpu", torch.bfloat16, enabled=self.bfloat16 and isinstance(step, Nice))


@torch.inference_mode()
def apply(step, rows):
    found = [
        step(Vectors(piece[None], torch.ones(1, len(piece), dtype=torch.bool))).values[0]
        for piece in rows.split(BLOCK)
    ]
    return torch.cat(found) if found else rows


def chain_of(method, dim, rank, seed, options):
    """A map by its name; MiniLM has components that never change, so flows come behind a rotation."""
    training = FlowTraining(steps=options.steps, sample=options.rows, seed=seed)
    turn = Whitening(dim, rank=rank, power=0.0)
    made = {
        "none": lambda: [],
        "whitening": lambda: [Whitening(dim)],
        "NICE": lambda: [turn, Nice(rank, fitting=training)],
        "Glow": lambda: [turn, Glow(rank, fitting=training)],
    }
    return Chain(made[method](), options.bfloat16)
