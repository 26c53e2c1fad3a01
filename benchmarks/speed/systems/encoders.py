"""What encodes the queries of token vectors: the same for every system, so measured once."""

from functools import partial

from systems import System


def build(files, folder):
    from tokens_model import tokens_model

    from counterpoint.index import IndexSettings, build_index
    from counterpoint.types import Document

    settings = IndexSettings(lexical=None)
    build_index([Document("a", "one text")], tokens_model(), folder / "index", settings)


def opened(backend, files, folder):
    from tokens_model import tokens_model

    from counterpoint.index import Index
    from counterpoint.library.stored import encoder_of

    model = tokens_model() if backend == "torch" else None
    encoder = encoder_of(Index(folder / "index"), model, backend)

    def ask(query, k):
        encoder.encode_query([query.text])
        return []

    return ask


NEEDS = ("counterpoint.index", "counterpoint.library", "onnxruntime")
SYSTEMS = {
    "encoding, ONNX Runtime": System("encoding", NEEDS, build, partial(opened, "onnx")),
    "encoding, 8 bits": System("encoding", NEEDS, build, partial(opened, "int8")),
    "encoding, torch": System("encoding", NEEDS, build, partial(opened, "torch")),
}
