"""The rows of RoC's tables as recipes of one budget, made of the shipped ones: `roc` and its ablations.

Rows that make a vector differ in their objective and in what is hidden, and in nothing else. SparTerm and the
interactive model of table 6 have a budget of their own, the same with hidden matches and without.

CLEAR's margin ξ = 1 is against cosines, as public implementations have it. Against 20 times the cosine, the
scale that NLL needs, MiniLM meets it from the start for most triples and learns little: that is a row apart.
"""

from dataclasses import dataclass, replace

from counterpoint.learn import BM25Negatives, Orthogonality, WithoutAnswers
from counterpoint.recipe import DataSettings, change, load_recipe
from counterpoint.score import Dot

START = "start"  # the embedded MiniLM, untrained
NAIVE, CLEAR, OURS = "dense", "CLEAR", "I + E"
EMBEDDING = {NAIVE: "roc:naive", CLEAR: "roc:clear", "E": "roc:embedding", "I": "roc:input", OURS: "roc"}
SCALED_CLEAR = "CLEAR, 20 cosines"  # the claims go by CLEAR on cosines
DROPPED = "I, dropped"  # the claims go by [MASK]
HEAVY = "E, 100 times"  # the claims go by orthogonality as it is printed, with a weight of 1
VECTORS = (*EMBEDDING, SCALED_CLEAR, DROPPED, HEAVY)  # rows whose index is searched
ALIKE = ", λ alike"  # after the name of a hybrid that has the naive sum's λ
PAIRS = {"SparTerm": "sparterm", "interactive BERT": "cross-encoder"}  # rows of table 6, and their recipes
HIDDEN = {" + I": "mask", " + I, dropped": "drop"}  # after the name of such a row: how matches are hidden
SIZES = {"query": 64, "document": 128}  # positions in training
TOP_LAYERS = ("query.backbone.model_.encoder.layer.[45].*",)  # of MiniLM's six


@dataclass(frozen=True)
class Budget:
    """What rows have alike.

    Attributes:
        steps: of the optimiser.
        batch: queries a step, each with a positive and one of BM25's negatives.
        pair_steps: of SparTerm and the interactive model.
        pair_batch: of these two.
        all_layers: whether the whole backbone learns where texts become vectors, and not its top two layers.
        answers: a file of answers to the training queries, if there is one; no negative holds them then.
        seed: of every row.
    """

    steps: int = 150
    batch: int = 10
    pair_steps: int = 200
    pair_batch: int = 8
    all_layers: bool = False
    answers: str | None = None
    seed: int = 1


def negatives(budget):
    """One of BM25's best for each query, with no answer in it where answers are known."""
    if budget.answers is None:
        return (BM25Negatives(count=1, depth=50),)
    return (WithoutAnswers(BM25Negatives(count=8, depth=50), budget.answers, count=1),)


def row(source, budget, *sizes, **settings):
    """A shipped recipe with one stage of training, nothing evaluated meanwhile, and the last model kept."""
    recipe = change(load_recipe(source), sizes)
    common = {"negatives": negatives(budget), "evaluate_every": None, "checkpoint_every": 50, "keep": "last"}
    return replace(
        recipe,
        stages=[replace(recipe.stages[0], **common, **settings)],
        seed=budget.seed,
        data=DataSettings(development=None, held_out=0),
    )


def vectors(source, budget, **settings):
    """A row that makes one vector a text."""
    sizes = [f"model.encoder.query.{side}.max_length={n}" for side, n in SIZES.items()]
    learn = ("*",) if budget.all_layers else TOP_LAYERS
    return row(
        source, budget, *sizes, steps=budget.steps, batch=budget.batch, lr=2e-5, learn=learn, **settings
    )


def pair(source, budget, hide=None):
    """A row of table 6, with hidden matches or without."""
    where = "model.max_length" if source == "cross-encoder" else "model.encoder.query.document.max_length"
    settings = {
        "steps": budget.pair_steps,
        "batch": budget.pair_batch,
        "mask_matches": 0.15 if hide else 0.0,
        "hide": hide or "mask",
    }
    return row(source, budget, f"{where}={SIZES['document']}", **settings)


def rows(budget):
    """All rows by name; what is trained on is said where they are run."""
    found = {name: vectors(source, budget) for name, source in EMBEDDING.items()}
    found[SCALED_CLEAR] = vectors(EMBEDDING[CLEAR], budget, scorer=20.0 * Dot("mean"))
    found[DROPPED] = vectors(EMBEDDING["I"], budget, hide="drop")
    plain = load_recipe(EMBEDDING[NAIVE]).stages[0].objective
    found[HEAVY] = vectors(EMBEDDING["E"], budget, objective=plain + 100.0 * Orthogonality("mean"))
    for plain, source in PAIRS.items():
        found[plain] = pair(source, budget)
        found |= {plain + name: pair(source, budget, hide) for name, hide in HIDDEN.items()}
    return found
