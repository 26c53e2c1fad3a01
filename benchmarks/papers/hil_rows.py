"""The rows of HIL's tables, its ablations and its sweeps as recipes of one budget, on MiniLM.

Every row has InterIso among its terms, where it does not count with a weight too small to matter, so that the
logs of all rows have the curves of figure 8.
"""

from dataclasses import dataclass, replace

from benchmarks.papers.hil_citadel import CITADELS, citadel

from counterpoint.encode import (
    PUNCTUATION,
    DualEncoder,
    Encoder,
    Linear,
    Static,
    TextInput,
    TokenVectors,
    Transformer,
)
from counterpoint.learn import BM25Negatives, CosReg, Fit, InterIso, IStar, PairwiseCrossEntropy, Train
from counterpoint.model import Model
from counterpoint.recipe import DataSettings, Recipe
from counterpoint.score import MaxSim, ZScore

PAPER = 180  # positions of a document
SEEN = 1e-6  # a weight that lets InterIso be logged and no more
ISO = (0.1, 0.2, 0.4, 0.7, 1.0)  # figure 7
ANISO = (-0.1, -0.2, -0.4, -0.7, -1.0)  # figures 4 and 7
SAME = (-0.3, 0.3)  # as HIL's
SCALES = {"l": 0.52, "h": 4.76}  # 1/σ of HIL with seed 1 after 60 steps in which the backbone learnt
HIL = (-1.0, -0.6, -0.1, 0.3)  # in addition to the paper's −0.3
CURVES = ("HIL", "HIL without reg_L", "HIL without reg_H", "HIL without regularisers")  # figure 8


@dataclass(frozen=True)
class Budget:
    """What all rows have alike.

    Attributes:
        steps: of the optimiser.
        batch: queries a step, each with a positive and one of BM25's negatives.
        fitted: documents that projections are fitted to before.
        frozen: whether only projections learn.
        seed: of every row.
        curves: whether the rows of figure 8 are evaluated meanwhile.
        marked: whether queries and documents have ColBERT's markers, and queries are filled up with [MASK].
        positions: of a document in training.
    """

    steps: int = 300
    batch: int = 16
    fitted: int = 300
    frozen: bool = False
    seed: int = 1
    curves: bool = True
    marked: bool = False
    positions: int = PAPER


def per_token(head):
    return head(skip=PUNCTUATION, projection=Linear(128, bias=False), normalise=True)


def texts(budget):
    """How queries and documents are put before the backbone."""
    if not budget.marked:
        return TextInput(32), TextInput(budget.positions)
    return TextInput(32, marker="[unused0]", expand_to=32), TextInput(budget.positions, marker="[unused1]")


def recipe(heads, objective, scorer, budget, *, search=None, curve=False, start=None):
    """A row; rates are 50 times higher where only projections learn.

    Each set's scores count once in a search unless `search` has weights or z-scores set them. With a `start`,
    the folder of a ColBERT, its projection goes on as that of `tokens` or `h`.
    """
    text = texts(budget)
    encoder = Encoder(Transformer("minilm"), {on: per_token(head) for on, head in heads.items()}, *text)
    search = {"weights": dict.fromkeys(heads, 1.0), "scale": "none", **(search or {})}
    curve = curve and budget.curves
    new = [on for on in heads if start is None or on == "l"]
    fits = [Fit(on, "projection", f"fit-{on}", budget.fitted) for on in new]
    training = Train(
        objective,
        scorer,
        steps=budget.steps,
        batch=budget.batch,
        negatives=(BM25Negatives(count=1, depth=50),),
        lr=1e-3 if budget.frozen else 2e-5,
        learn=("query.heads.*",) if budget.frozen else ("*",),
        remember=4.0 if budget.frozen else 0.0,
        lr_factors={} if budget.frozen else {"query.heads.*": 10.0},
        evaluate_every=max(1, budget.steps // 6) if curve else None,
        keep="last",
    )
    return Recipe(
        name="row",
        paper="Kim, Lee and Hwang 2024, HIL: hybrid isotropy learning for zero-shot performance",
        model=Model(DualEncoder(encoder), search=search),
        stages=[*fits, *([Fit("l", "idf", "idf", None)] if "idf" in search else []), training],
        seed=budget.seed,
        data=DataSettings(development="dev" if curve else None, held_out=0),
        start=start,
        start_names={"query.heads.tokens.": "query.heads.h."} if start and "h" in heads else {},
    )


def colbert(budget, *terms, start=None):
    """ColBERT with terms on its space; 8·MaxSim, as the recipe `colbert` (z-scores give H about 4)."""
    scorer = 8 * MaxSim("tokens")
    objective = PairwiseCrossEntropy(name="late")
    for term in terms:
        objective = objective + term
    if not any(isinstance(term, InterIso) for term in terms):
        objective = objective + InterIso("tokens", SEEN, absolute=False, name="iso_tokens")
    return recipe({"tokens": TokenVectors}, objective, scorer, budget, start=start)


def untrained(row):
    """MiniLM with the projection that the row starts from: principal components of its documents' rows."""
    return replace(row, stages=row.stages[:-1])


def iso(weight):
    return InterIso("tokens", weight, name="iso_tokens")


def hil(budget, *, lam=-0.3, regs="lh", sets="lh", idf=True, scales=None, curve=False, start=None):
    """HIL, or what is left of it.

    Args:
        budget: of all rows.
        lam: λ.
        regs: which of the two regularisers count.
        sets: which of the two spaces there are.
        idf: whether L is weighed by it.
        scales: of each space's scores in the loss and at search; None for z-scores.
        curve: evaluate meanwhile.
        start: the folder of a ColBERT to begin with.
    """
    heads = {on: {"l": Static, "h": TokenVectors}[on] for on in sets}
    objective, scorer = None, None
    for on in sets:
        score = MaxSim(on, idf=float(idf and on == "l"))
        score = ZScore(score) if scales is None else scales[on] * score
        weight = (-lam if on == "l" else lam) if on in regs else SEEN
        terms = PairwiseCrossEntropy(on, score) + InterIso(on, weight, on == "l", f"iso_{on}")
        objective = terms if objective is None else objective + terms
        scorer = score if scorer is None else scorer + score
    search = {"idf": {"l": 1.0}} if idf and "l" in sets else {}
    search |= {} if scales is None else {"weights": scales}  # only z-scores set them by themselves
    return recipe(heads, objective, scorer, budget, search=search, curve=curve, start=start)


def rows(budget, folder_of=str):
    """All rows by name; those that start from another one name its folder and stand after it."""
    second = replace(budget, steps=budget.steps // 2)  # table 8
    before = folder_of("ColBERT")
    longer = replace(budget, positions=300)  # table 9
    return {
        "ColBERT": colbert(budget),
        "ColBERT, untrained": untrained(colbert(budget)),
        **{f"InterIso {weight:+g}": colbert(budget, iso(weight)) for weight in (*ISO, *ANISO, *SAME)},
        **{f"CosReg {w:+g}": colbert(budget, CosReg("tokens", w)) for w in (0.2, -0.1)},
        **{f"I-STAR {w:+g}": colbert(budget, IStar("tokens", w)) for w in (0.2, -0.6)},
        "HIL": hil(budget, curve=True),
        "HIL without reg_L": hil(budget, regs="h", curve=True),
        "HIL without reg_H": hil(budget, regs="l", curve=True),
        "HIL without regularisers": hil(budget, regs="", curve=True),
        "HIL without idf": hil(budget, idf=False),
        "HIL without z-scores": hil(budget, scales={"l": 1.0, "h": 1.0}),
        "HIL at fixed scales": hil(budget, scales=SCALES),
        "H only": hil(budget, sets="h"),
        "L only": hil(budget, sets="l"),
        **{f"HIL λ {lam:+g}": hil(budget, lam=lam) for lam in HIL},
        "ColBERT, half as long again": colbert(second, start=before),
        "HIL from ColBERT": hil(second, start=before),
        "HIL λ +0.3 from ColBERT": hil(second, lam=0.3, start=before),
        **{name: citadel(name, budget) for name in CITADELS},  # table 7
        "ColBERT, 300 positions": colbert(longer),
        "HIL, 300 positions": hil(longer),
    }


ENSEMBLES = {  # the isotropic module, then the anisotropic one; scores are added
    "ColBERT-λ": ("InterIso +0.4", "InterIso -0.1"),
    "ColBERT-cosreg": ("CosReg +0.2", "CosReg -0.1"),
    "ColBERT-istar": ("I-STAR +0.2", "I-STAR -0.6"),
    **{f"ColBERT-λ {weight:+g}": ("InterIso +0.4", f"InterIso {weight:+g}") for weight in ANISO[1:]},
}
