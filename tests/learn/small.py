"""A small training task on a tiny random model: each topic's word is in its queries and documents."""

from counterpoint.encode import (
    Cls,
    DualEncoder,
    Encoder,
    InteractiveEncoder,
    Linear,
    Mean,
    TextInput,
    TokenVectors,
    Transformer,
)
from counterpoint.learn import DevelopmentSet, Example, TrainingSet
from counterpoint.model import Model

WORDS = ["cat", "dog", "mat", "house", "red", "blue", "run", "running", "query", "document", "sat", "where"]


def training_set(examples=24):
    queries = {f"q{at}": f"where is {WORDS[at % 12]} {WORDS[at // 12]}" for at in range(examples)}
    documents = {
        f"d{at}": f"the {WORDS[at % 12]} in an {WORDS[at // 12]} house" * (1 + at % 3)
        for at in range(examples)
    }
    made = tuple(
        Example(f"q{at}", (f"d{at}",), (f"d{(at + 1) % examples}", f"d{(at + 5) % examples}"))
        for at in range(examples)
    )
    return TrainingSet(queries, documents, made, {f"q{at}": frozenset([f"d{at}"]) for at in range(examples)})


def development_set(examples=24):
    data = training_set(examples)
    qrels = {f"q{at}": {f"d{at}": 1} for at in range(0, examples, 3)}
    return DevelopmentSet({q: data.queries[q] for q in qrels}, data.documents, qrels)


def model(folder, *, tokens=False, dropout=True, two=False):
    """A model with one pooled set `mean`, or one of token vectors."""

    def encoder(layers):
        heads = {"tokens": TokenVectors(projection=Linear(8), normalise=True)} if tokens else {"mean": Mean()}
        return Encoder(
            Transformer(str(folder), layers=layers), heads, TextInput(max_length=16), TextInput(max_length=24)
        )

    dual = DualEncoder(encoder(1), encoder(2) if two else None)
    return _set_up(Model(dual), dropout)


def judge(folder, *, dropout=True):
    """A cross-encoder of two layers."""
    made = InteractiveEncoder(Transformer(str(folder), layers=2), Linear(1), max_length=40)
    return _set_up(made, dropout)


def _set_up(made, dropout):
    made.setup()
    if not dropout:
        for module in made.modules():
            if type(module).__name__ == "Dropout":
                module.p = 0.0
    return made


__all__ = ["Cls", "development_set", "judge", "model", "training_set"]
