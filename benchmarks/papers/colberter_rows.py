"""The rows of ColBERTer's tables as recipes: heads and gates on MiniLM, which stays as it is.

Since only heads learn, all rows share one backbone, and `colberter.py` encodes a collection once for all.
"""

from dataclasses import replace

from counterpoint.encode import (
    DualEncoder,
    Encoder,
    Gate,
    Linear,
    Mean,
    TextInput,
    TokenVectors,
    Transformer,
    WholeWords,
)
from counterpoint.learn import Fit, FromData, GateSparsity, MarginMSE, ModelTeacher, Train
from counterpoint.model import Model
from counterpoint.recipe import DataSettings, Recipe
from counterpoint.score import Dot, MaxSim, Mix

STEPS, LONG, BATCH, FITTED = 120, 400, 16, 500
TEACHER = ModelTeacher(  # the untrained vectors of all components, which the small ones are to keep up with
    "minilm-tokens", 5 * Dot("mean") + 0.5 * MaxSim("tokens"), memory=4096, precision="auto"
)
CLS = 0.5  # α_CLS of the two-way reduction; 0.1 once there are whole words (the paper's choices)


def words(dim):
    return {"words": WholeWords(stem="nltk", projection=Linear(dim), normalise=True)}


def tokens(dim):
    both = ("query", "document")
    return {"tokens": TokenVectors(("[CLS]", "[SEP]"), both, projection=Linear(dim), normalise=True)}


def row(several, *, cls=0.1, sparse=0.0, exact=False, learned=True, start=None, second=None, long=False):
    """A recipe of one row.

    Args:
        several: the head of many vectors, by its set's name.
        cls: α_CLS, the weight of the loss on the single vector alone.
        sparse: α_CS, that of the loss on the gate; no gate where 0 and nothing is started from.
        exact: only equal words match.
        learned: aggregate by a learnt σ(γ); else by ½.
        start: the row whose weights it starts from.
        second: components of Uni-ColBERTer's second projection.
        long: more steps, in which σ(γ) keeps up with what the gate takes from the words' share.
    """
    (on,) = several
    heads = {"mean": Mean(Linear(128), normalise=True), **several}
    text = TextInput(180)
    encoder = Encoder(Transformer("minilm"), heads, query=text, document=text)
    dense, late = 10 * Dot("mean"), 1.0 * MaxSim(on, exact=exact, floor0=exact or sparse > 0)
    objective = MarginMSE()
    if cls:
        objective = objective + cls * MarginMSE(name="dense", scorer=dense)
    if sparse:
        objective = objective + sparse * GateSparsity(on)
    what = {"query.heads.*": True, "gates.*": sparse, "shared.*": second, "scorer.*": learned}
    factors = {"gates.*": 30.0} if sparse else {}  # one number a word, and few steps to close it in
    if long:
        factors = {"scorer.*": 30.0} | ({"gates.*": 10.0} if sparse else {})
    learning = Train(
        objective,
        steps=LONG if long else STEPS,
        batch=BATCH,
        negatives=(FromData(count=2),),
        learn=tuple(pattern for pattern, there in what.items() if there),
        lr=1e-3,
        lr_factors=factors,
        remember=2.0,
        keep="last",
    )
    fits = [Fit(name, "projection", f"fit-{name}", FITTED) for name in heads if start is None]
    return Recipe(
        name="row",
        paper="Hofstätter et al. 2022, Introducing neural bag of whole-words with ColBERTer",
        model=Model(
            DualEncoder(
                encoder,
                shared={on: Linear(second)} if second else None,
                gates={on: Gate()} if sparse else None,
            )
        ),
        scorer=Mix([dense, late]) if learned else 0.5 * dense + 0.5 * late,
        stages=[*fits, learning],
        data=DataSettings(development=None, held_out=0),
        start=start,
    )


def rows(folder_of, seed=1):
    """All rows by name, those that others start from before them."""
    found = {
        "tokens 32, fixed, α_CLS 0": row(tokens(32), cls=0, learned=False),
        "tokens 32, α_CLS 0.1": row(tokens(32), cls=0.1),
        "tokens 32, α_CLS 0.2": row(tokens(32), cls=0.2),
        "tokens 32": row(tokens(32), cls=CLS),
        "tokens 32, α_CLS 1": row(tokens(32), cls=1.0),
        "tokens 8": row(tokens(8), cls=CLS),
        "words 32": row(words(32)),
        "words 32, α_CLS 0.5": row(words(32), cls=0.5),
        "words 16": row(words(16)),
        "words 32, α_CS 0.5": row(words(32), sparse=0.5),
        "words 32, α_CS 0.75": row(words(32), sparse=0.75),
        "words 32, α_CS 1": row(words(32), sparse=1.0),
        "words 32, α_CS 1, α_CLS 0.5": row(words(32), sparse=1.0, cls=0.5),
        "words 8, α_CS 0.75, exact": row(words(8), sparse=0.75, exact=True),
        "words 1, α_CS 0.75, exact": row(
            words(32), sparse=0.75, exact=True, second=1, start=folder_of("words 32, α_CS 0.75")
        ),
        "tokens 32, long": row(tokens(32), cls=CLS, long=True),
        "words 32, long": row(words(32), long=True),
        "words 32, long, α_CS 0.1": row(words(32), sparse=0.1, long=True),
    }
    return {name: replace(recipe, seed=seed) for name, recipe in found.items()}


THRESHOLDS = {  # after training; `colberter_choice.py` measures others
    "words 32, long, α_CS 0.1, gate 1.075": ("words 32, long, α_CS 0.1", 1.075),
}
