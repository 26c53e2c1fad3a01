"""Named models that need no training and no model hub.

All of them stand on the embedded MiniLM (sentence-transformers/all-MiniLM-L6-v2). How the numbers here were
found, on training collections only, is in docs/default-model.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import as_file, files
from types import MappingProxyType

from counterpoint.encode import (
    DualEncoder,
    Encoder,
    Gate,
    Head,
    Linear,
    Mean,
    TextInput,
    TokenVectors,
    Transformer,
    WholeWords,
)
from counterpoint.model import Model
from counterpoint.tensors import read_tensors
from counterpoint.transform import Whitening

__all__ = ["EARLIER", "PRESETS"]

DIM = 384
FEEDBACK = MappingProxyType({"feedback": 0.1, "feedback_documents": 5})
RANK = 376  # word vectors of this model span 381 directions; the last few hold 0.1 % of the variance


def minilm() -> Model:
    """The default: BM25, one pooled vector, and one whitened vector for each distinct whole word."""
    return Model(
        _encoder(
            {"mean": Mean(normalise=True), "words": WholeWords(drop_punctuation=True)}, identifiers=True
        ),
        transforms={"words": [_whitening()]},
        search={
            "weights": {"lexical": 0.2, "mean": 0.28, "words": 0.52},
            "adapt": {"lexical": 1.0, "words": 20.0},
            "idf": {"words": 0.5},
            **FEEDBACK,
        },
        codec="1-bit",
        analyzer="english-long",
    )


def minilm_of_whole_names() -> Model:
    """The default as it was before its words saw names such as checkIfEmpty as several."""
    return Model(
        _encoder({"mean": Mean(normalise=True), "words": WholeWords(drop_punctuation=True)}),
        transforms={"words": [_whitening()]},
        search={"weights": {"lexical": 0.2, "mean": 0.2, "words": 0.6}, "idf": {"words": 0.5}, **FEEDBACK},
        codec="int4",
        analyzer="english-long",
    )


def minilm_dense() -> Model:
    """One pooled vector a text, as the model was trained; cosine."""
    return Model(
        _encoder({"mean": Mean(normalise=True)}),
        search={"weights": {"lexical": 0.4, "mean": 0.6}, "adapt": {"lexical": 2.0}},
        analyzer="english-long",
    )


def minilm_tokens() -> Model:
    """As the default with a vector for every word-piece, as it comes out of the last layer, untrained."""
    return Model(
        _encoder({"mean": Mean(normalise=True), "tokens": TokenVectors(normalise=True)}),
        search={"weights": {"lexical": 0.2, "mean": 0.2, "tokens": 0.6}, "idf": {"tokens": 0.5}, **FEEDBACK},
        analyzer="english-long",
    )


def colberter() -> Model:
    """ColBERTer on MiniLM: 128 components a text, 8 a distinct word, matched exactly, stop words left out."""
    return _colberter("colberter", Linear(8), {"mean": 5.124, "words": 0.488})


def uni_colberter() -> Model:
    """Uni-ColBERTer on MiniLM: 128 components a text and one number a distinct word, matched exactly.

    Of those that we trained (docs/colberter.md) the smallest, and the best for its size.
    """
    return _colberter("uni-colberter", Linear(32), {"mean": 5.139, "words": 0.486}, {"words": Linear(1)})


def _colberter(
    name: str, words: Linear, weights: Mapping[str, float], shared: Mapping[str, Linear] | None = None
) -> Model:
    """A trained one; the weights are σ(γ)·10 and (1 − σ(γ))·1, as learnt: the parts have these factors."""
    heads = {
        "mean": Mean(Linear(128), normalise=True),
        "words": WholeWords(stem="nltk", projection=words, normalise=True),
    }
    encoder = _encoder(heads, gates={"words": Gate()}, shared=shared).setup()
    with as_file(files("counterpoint") / "resources" / f"{name}.safetensors") as path:
        backbone = {name: own for name, own in encoder.state_dict().items() if ".backbone." in name}
        encoder._load_strictly({**backbone, **read_tensors(path)}, path)
    search = {"weights": dict(weights), "scale": "none", "exact": ("words",)}
    return Model(encoder, search=search, codec="float16" if shared else "int8")


PRESETS: Mapping[str, Callable[[], Model]] = MappingProxyType(
    {
        "minilm": minilm,
        "minilm-dense": minilm_dense,
        "minilm-tokens": minilm_tokens,
        "colberter": colberter,
        "uni-colberter": uni_colberter,
    }
)

EARLIER: Mapping[str, tuple[Callable[[], Model], ...]] = MappingProxyType(
    {"minilm": (minilm_of_whole_names,)}
)
"""By preset what it was before; indexes that were built with it are searched with it."""


def _encoder(
    heads: Mapping[str, Head],
    gates: Mapping[str, Gate] | None = None,
    shared: Mapping[str, Linear] | None = None,
    identifiers: bool = False,
) -> DualEncoder:
    text = TextInput(max_length=512)
    encoder = Encoder(Transformer("minilm"), heads, query=text, document=text, identifiers=identifiers)
    return DualEncoder(encoder, shared=shared, gates=gates)


def _whitening() -> Whitening:
    """The map fitted on words of the training collections, as shipped."""
    whitening = Whitening(DIM, rank=RANK, normalise=True).setup()
    with as_file(files("counterpoint") / "resources" / "minilm-words.safetensors") as path:
        whitening._load_strictly(read_tensors(path), path)
    return whitening
