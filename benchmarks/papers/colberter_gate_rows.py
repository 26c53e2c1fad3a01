"""Rows, teachers and questions of `colberter_gate.py`, fixed before anything was evaluated.

The paper's gate has three properties that the rows of `colberter_rows.py` lack. The whole backbone learns.
Rows have no unit length before the gate, so a word has a weight without help from r. The gate learns at the
rate of the projections, so it cannot close by its bias alone. Here r is also exactly 1 for every word at
first: the released code draws the gate's weights, which spreads r around 1. `start_model` sets them to 0.

`AGAIN` changes one property at a time, at the paper's α_CS of ¾. `OLD` changes all of them: the way of
`colberter_rows.py` and of the shipped models, with as many steps as the others. `OPEN` has no gate, to say
what the gate costs with unit rows and with a frozen backbone.

Without unit length a smaller r can be undone by a larger projection. So the level of r means little, and
`separation` of `colberter_gate_measures.py`, which depends on the order alone, is reported next to what is
dropped.

The factors of the scores were set on 150 training documents and queries before training: after the fit, the
vectors' mean squared length is such that σ = ½ gives both parts about the size that unit vectors have with
10·cosine + MaxSim.
"""

from dataclasses import dataclass

from counterpoint.encode import (
    DualEncoder,
    Encoder,
    Gate,
    InteractiveEncoder,
    Linear,
    Mean,
    TextInput,
    Transformer,
    WholeWords,
)
from counterpoint.learn import (
    BM25Negatives,
    Fit,
    FromData,
    GateSparsity,
    MarginMSE,
    NegativeLogLikelihood,
    Train,
)
from counterpoint.model import Model
from counterpoint.recipe import DataSettings, Recipe
from counterpoint.score import Dot, MaxSim, Mix

SEEDS = (1, 2, 3)
STEPS, JUDGE_STEPS, BATCH = 600, 500, 16
PAPER = 0.75  # α_CS that the paper goes on with
CLS = 0.1  # α_CLS
GRID = (0.0, PAPER, 0.5, 1.0, 0.25)  # α_CS in the order of training; 0 has no gate
THRESHOLDS = (0.0, 0.1, 0.25, 0.5, 0.75)  # after training; r starts at 1
LOSS = 0.005  # of nDCG@10 on held-out queries
CROSS, OWN = "cross-encoder", "minilm"  # teachers
PAPER_COSTS = (1.0, 1 / 15)  # factors of the pooled vector's score and of MaxSim without unit length
UNIT_COSTS = (10.0, 1.0)
RATE, FAST = 50.0, 1500.0  # of projections, 1e-3, and of the gate of `colberter_rows.py`, 3e-2


@dataclass(frozen=True)
class Way:
    """How a row is trained.

    Attributes:
        sparse: α_CS; no gate where 0.
        teacher: whose scores the margins are of.
        unit: sets whose vectors have unit length.
        frozen: only projections, gate and σ(γ) learn.
        drawn: the gate starts with drawn weights, as in the library.
        fast: the gate learns 30 times as fast as the projections.
    """

    sparse: float = PAPER
    teacher: str = CROSS
    unit: tuple[str, ...] = ()
    frozen: bool = False
    drawn: bool = False
    fast: bool = False


def named(sparse):
    return f"α_CS {sparse:g}"


OLD = "old way"
AGAIN = {
    "unit rows": Way(unit=("words",)),
    "frozen backbone": Way(frozen=True),
    "teacher MiniLM": Way(teacher=OWN),
    "fast gate": Way(fast=True),
    "drawn gate": Way(drawn=True),
}
OPEN = {  # controls of controls: what the gate costs there
    "unit rows, no gate": Way(0.0, unit=("words",)),
    "frozen backbone, no gate": Way(0.0, frozen=True),
}
ROWS = {
    **{named(sparse): Way(sparse) for sparse in GRID},
    OLD: Way(teacher=OWN, unit=("mean", "words"), frozen=True, drawn=True, fast=True),
    **AGAIN,
    **OPEN,
}
QUESTIONS = {
    "the price of the gate at the paper's α_CS": (named(PAPER), named(0)),
    **{name: (name, named(PAPER)) for name in (OLD, *AGAIN)},
    **{f"the price of the gate: {name}": (name.removesuffix(", no gate"), name) for name in OPEN},
}


def model_of(way):
    """The declared model of a row."""
    heads = {
        "mean": Mean(Linear(128), normalise="mean" in way.unit),
        "words": WholeWords(stem="nltk", projection=Linear(32), normalise="words" in way.unit),
    }
    text = TextInput(180)
    encoder = Encoder(Transformer("minilm"), heads, query=text, document=text)
    return Model(DualEncoder(encoder, gates={"words": Gate()} if way.sparse else None))


def start_model():
    """A model whose gate is 1 for every word."""
    model = model_of(Way()).setup()
    model.encoder.gates["words"].linear_.weight.data.zero_()
    return model.eval()


def recipe_of(way, seed, steps, start):
    """The recipe of a row; `start` is the folder of `start_model`."""
    dense_cost, words_cost = (
        (UNIT_COSTS if on in way.unit else PAPER_COSTS)[at] for at, on in enumerate(("mean", "words"))
    )
    dense = dense_cost * Dot("mean")
    objective = MarginMSE() + CLS * MarginMSE(name="dense", scorer=dense)
    if way.sparse:
        objective = objective + way.sparse * GateSparsity("words")
    gates = {"gates.*": FAST if way.fast else RATE} if way.sparse else {}
    learning = Train(
        objective,
        steps=steps,
        batch=BATCH,
        negatives=(FromData(count=1),),
        learn=("query.heads.*", "scorer.*", *gates) if way.frozen else ("*",),
        lr_factors={"query.heads.*": RATE, "scorer.*": 10 * RATE, **gates},
        keep="last",
    )
    return Recipe(
        name="row",
        paper="Hofstätter et al. 2022, Introducing neural bag of whole-words with ColBERTer",
        model=model_of(way),
        scorer=Mix([dense, words_cost * MaxSim("words", floor0=True)]),
        stages=[*(Fit(on, "projection", f"fit-{on}", 500) for on in ("mean", "words")), learning],
        seed=seed,
        data=DataSettings(development=None, held_out=0),
        start=None if way.drawn else start,
    )


def judge_recipe(steps):
    """The teacher: a cross-encoder that sees every training query about once.

    No published cross-encoder is at hand. The student's own vectors, BM25 and their sums know nothing that
    the student cannot see by itself; a cross-encoder lets words of query and document interact, as the
    paper's teachers do, and learns from judgements. Its scores stay as they are, so that margins have the
    scale of a cross-encoder's, to which the paper's α_CS belongs.
    """
    learning = Train(
        NegativeLogLikelihood(),
        steps=steps,
        batch=BATCH,
        negatives=(BM25Negatives(count=3, depth=50),),
        lr=5e-5,
        keep="last",
    )
    return Recipe(
        name="judge",
        paper="Nogueira and Cho 2019, Passage re-ranking with BERT",
        model=InteractiveEncoder(Transformer("minilm"), Linear(1), max_length=256),
        stages=[learning],
        data=DataSettings(development=None, held_out=0),
    )
