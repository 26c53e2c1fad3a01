"""Named models that need no training and no model hub.

All use the embedded MiniLM (sentence-transformers/all-MiniLM-L6-v2). docs/default-model.md describes how the
numbers were chosen, on training collections only.
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
    """The previous default, which did not split names such as checkIfEmpty."""
    return Model(
        _encoder({"mean": Mean(normalise=True), "words": WholeWords(drop_punctuation=True)}),
        transforms={"words": [_whitening()]},
        search={"weights": {"lexical": 0.2, "mean": 0.2, "words": 0.6}, "idf": {"words": 0.5}, **FEEDBACK},
        codec="int4",
        analyzer="english-long",
    )


def minilm_dense() -> Model:
    """One pooled vector per text, as the model was trained, compared by cosine."""
    return Model(
        _encoder({"mean": Mean(normalise=True)}),
        search={"weights": {"lexical": 0.4, "mean": 0.6}, "adapt": {"lexical": 2.0}},
        analyzer="english-long",
    )


def minilm_tokens() -> Model:
    """A pooled vector, and one vector per word-piece from the last layer, untrained."""
    return Model(
        _encoder({"mean": Mean(normalise=True), "tokens": TokenVectors(normalise=True)}),
        search={"weights": {"lexical": 0.2, "mean": 0.2, "tokens": 0.6}, "idf": {"tokens": 0.5}, **FEEDBACK},
        analyzer="english-long",
    )


def colberter() -> Model:
    """ColBERTer on MiniLM: 128 components per text, 8 per distinct word, exact match, no stop words."""
    return _colberter("colberter", Linear(8), {"mean": 5.124, "words": 0.488})


def uni_colberter() -> Model:
    """Uni-ColBERTer on MiniLM: 128 components per text and one number per distinct word, exact match.

    The smallest of the models trained in docs/colberter.md, and the best for its size.
    """
    return _colberter("uni-colberter", Linear(32), {"mean": 5.139, "words": 0.486}, {"words": Linear(1)})


def _colberter(
    name: str, words: Linear, weights: Mapping[str, float], shared: Mapping[str, Linear] | None = None
) -> Model:
    """A trained ColBERTer; the weights are σ(γ)·10 and (1 − σ(γ))·1, since the parts have these factors."""
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
"""Previous versions of presets, to search indexes that were built with them."""


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
    whitening = Whitening(DIM, rank=RANK, normalise=True).setup()
    with as_file(files("counterpoint") / "resources" / "minilm-words.safetensors") as path:
        whitening._load_strictly(read_tensors(path), path)
    return whitening
