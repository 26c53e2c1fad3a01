"""Maps that `isotropy.py` fits and measures, one after the other."""

import copy
from contextlib import contextmanager

import torch

from counterpoint.transform import FlowTraining, Glow, Nice, Whitening
from counterpoint.vectors import Vectors

BLOCK = 65_536  # rows read at a time


class Chain:
    """Maps one after the other, or none, on the device of the rows; NICE with bfloat16 if that is wished.

    It is fitted with float32 products of that precision, since batch statistics in bfloat16 spoil the fit,
    and applied with its networks in bfloat16, which changes nothing to speak of.
    """

    def __init__(self, steps=(), bfloat16=False):
        self.steps = list(steps)
        self.bfloat16 = bfloat16

    def fit(self, rows):
        for place, step in enumerate(self.steps):
            if place:
                rows = self.apply(self.steps[place - 1], rows)
            step.setup().to(rows.device)
            with products("medium" if self.quick(step) else "highest"):
                step.fit(rows.split(BLOCK))
        return self

    def centred_on(self, rows):
        """The same maps about the mean of these rows; flows come after a rotation, which has it."""
        first = copy.deepcopy(self.steps[0]).recentre(rows.split(BLOCK))
        return Chain([first, *self.steps[1:]], self.bfloat16)

    def __call__(self, rows):
        for step in self.steps:
            rows = self.apply(step, rows)
        return rows

    def apply(self, step, rows):
        with torch.autocast(rows.device.type, torch.bfloat16, enabled=self.quick(step)):
            return apply(step, rows)

    def quick(self, step):
        return self.bfloat16 and isinstance(step, Nice)


@contextmanager
def products(precision):
    """How precise `torch` multiplies float32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@torch.inference_mode()
def apply(step, rows):
    found = [
        step(Vectors(piece[None], torch.ones(1, len(piece), dtype=torch.bool, device=rows.device))).values[0]
        for piece in rows.split(BLOCK)
    ]
    return torch.cat(found) if found else rows


def chain_of(method, dim, rank, seed, options):
    """A map by its name.

    MiniLM has components that never change, so flows come after a rotation to a rank; without a rank, for
    models that have none, they see the vectors themselves.
    """
    training = FlowTraining(steps=options.steps, sample=options.rows, seed=seed)
    turn = [] if rank is None else [Whitening(dim, rank=rank, power=0.0)]
    left = rank or dim
    made = {
        "none": lambda: [],
        "whitening": lambda: [Whitening(dim)],
        "half whitening": lambda: [Whitening(dim, power=-0.25)],
        "NICE": lambda: [*turn, Nice(left, fitting=training)],
        "Glow": lambda: [*turn, Glow(left, fitting=training)],
    }
    return Chain(made[method](), options.bfloat16)
