"""The grid of `daft.py`: alignment and learning rate apart, over several seeds, with tests.

The document encoder of the grid was chosen before the grid was trained: `mean, far`. In `collapse` it ended
nearest to one point without alignment, and it ranked with alignment. Its vectors are in a space of their own,
as in the paper, whose two encoders share no initialisation.

A row with alignment trains `align` steps of the query encoder alone, then the other steps of both encoders.
A row without alignment trains all steps of both. Rows with and without alignment have the same rate at the
same step: 2e-5 or 2e-4 throughout, or 2e-4 for the first `align` steps and then 2e-5, as in `collapse`.
Queries of the test split are searched once, after training.
"""

from dataclasses import replace
from itertools import product
from typing import NamedTuple

from benchmarks.papers.daft_rows import ALIGNED, Cls, light, model_of, recipe_of, stages_of

RATES = {  # of the first `align` steps, and of the others
    "2e-05": (2e-5, 2e-5),
    "2e-04": (2e-4, 2e-4),
    "2e-04 then 2e-05": (2e-4, 2e-5),
}
CONSTANT = "2e-05"  # what other rates are compared with


class Cell(NamedTuple):
    """What rows of the grid have in common that differ only in their seed."""

    documents: str
    arm: str
    rate: str

    def __str__(self):
        return f"{self.documents}; {self.arm}; {self.rate}"


def grid_rows(documents, seeds, steps, align):
    """Recipes by cell and seed. All cells of a seed come before the next seed."""
    return {
        (str(cell := Cell(name, arm, rate)), seed): recipe_of(
            f"{cell}; {steps} steps; seed {seed}",
            model_of(name, light(Cls()), 48, shared=True),
            grid_stages(arm, RATES[rate], steps, align),
            seed,
            held_out=0,
        )
        for seed, name, arm, rate in product(seeds, documents, ALIGNED, RATES)
    }


def grid_stages(arm, rates, steps, align):
    """One stage of both encoders if nothing changes on the way, two stages otherwise."""
    if arm == ALIGNED[0] and len(set(rates)) == 1:
        stages = stages_of(arm, steps, 0)
    else:
        stages = stages_of("alignment", steps - align, align)
    if arm == ALIGNED[0] and len(stages) == 2:
        stages[0] = replace(stages[0], name="first", learn=("*",))
    return [
        replace(stage, lr=rate, stop=None, evaluate_every=50)
        for stage, rate in zip(stages, rates[-len(stages) :], strict=True)
    ]


def contrasts(names):
    """Pairs of cells that differ in the arm or in the rate alone: (treatment, control)."""
    known = [Cell(*name.split("; ")) for name in names]
    pairs = [(cell, cell._replace(arm=ALIGNED[0])) for cell in known if cell.arm != ALIGNED[0]]
    pairs += [(cell, cell._replace(rate=CONSTANT)) for cell in known if cell.rate != CONSTANT]
    return [(str(treatment), str(control)) for treatment, control in pairs if control in known]
