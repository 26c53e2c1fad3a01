"""Bytes a document by purpose, for models and codecs, and what a build takes: figures of `counterpoint plan`.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.sizes DATA [--documents 3000] [--words 60 180]
        [--models none minilm-dense minilm] [--quick]

DATA is a collection. Its texts are joined and cut into documents of so many words each. Their vectors are
made once for each model and length; then an index is built for each codec. Bytes are those of `info`. Two
lengths give a line: bytes of a document whatever its length, and bytes a word. What is printed are tables of
`src/counterpoint/resources/scale.toml`: a purpose has these two numbers. Times are CPU times of one process.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from benchmarks.common import parser_of

from counterpoint.data import open_collection
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.loading import load_model
from counterpoint.types import Document, Ragged

CODECS = ("1-bit", "2-bit", "4-bit", "int8", "float16")


class Stored:
    """A model whose vectors are made: encoding costs nothing."""

    def __init__(self, model, texts: Sequence[str], vectors: Mapping[str, Ragged]):
        self.sets, self.settings = model.sets, model.index_settings()
        self._place = {text: i for i, text in enumerate(texts)}
        self._vectors = {name: vectors[name] for name in self.sets}

    def fingerprint(self) -> str:
        return "stored"

    def encode_document(self, texts: Sequence[str]) -> dict[str, Ragged]:
        rows = np.array([self._place[text] for text in texts])
        return {name: vectors.take(rows) for name, vectors in self._vectors.items()}

    encode_query = encode_document


def main():
    parser = parser_of(__doc__)
    parser.add_argument("data", help="collection")
    parser.add_argument("--documents", type=int, default=1500)
    parser.add_argument("--words", type=int, nargs=2, default=(60, 180), metavar=("FEW", "MANY"))
    parser.add_argument("--models", nargs="+", default=["none", "minilm-dense", "minilm"])
    parser.add_argument("--quick", action="store_true", help="300 documents")
    options = parser.parse_args()
    count = 300 if options.quick else options.documents
    collections = [texts_of(options.data, count, words) for words in options.words]
    made = [encoded(texts) if set(options.models) - {"none"} else {} for texts in collections]
    for name in options.models:
        few, many = (measured(name, *each) for each in zip(collections, made, strict=True))
        for codec, purposes in many.items():
            print(f'\n[bytes."{name}"."{codec}"]  # a document, and a word')
            for purpose, most in purposes.items():
                least = few[codec].get(purpose, 0.0)
                slope = (most - least) / (options.words[1] - options.words[0])
                print(f'"{purpose}" = [{least - slope * options.words[0]:.1f}, {slope:.3f}]', flush=True)


def texts_of(data, count, words):
    """Texts of so many words each, cut from the texts of a collection one after the other."""
    stream = chain.from_iterable(d.full_text.split() for d in open_collection(data).documents())
    texts = [" ".join(islice(stream, words)) for _ in range(count)]
    return list(dict.fromkeys(text for text in texts if text))


def encoded(texts):
    """All vector sets of the default model; other presets have some of them."""
    started = time.process_time()
    found = load_model("minilm").encode_document(texts)
    spent = time.process_time() - started
    rows = {name: round(len(vectors.values) / len(texts), 1) for name, vectors in found.items()}
    print(f"# {len(texts) / spent:.1f} documents encoded a second; vectors a document: {rows}", flush=True)
    return found


def measured(name, texts, vectors):
    """For each codec, bytes a document by purpose."""
    documents = [Document(str(i), text) for i, text in enumerate(texts)]
    stored = None if name == "none" else Stored(load_model(name), texts, vectors)
    pooled = stored is None or all(of.pooled for of in stored.sets.values())
    found = {}
    for codec in ("float16", "int8") if pooled and stored else ("none",) if pooled else CODECS:
        settings = IndexSettings() if stored is None else replace(stored.settings, codec=codec)
        with TemporaryDirectory() as folder:
            started = time.process_time()
            build_index(documents, stored, Path(folder) / "index", settings)
            spent = 1000 * (time.process_time() - started) / len(texts)
            with Index(Path(folder) / "index") as index:
                sizes = index.info()["bytes_by_purpose"]
        print(f"# {name}, {codec}: {spent:.2f} ms a document without the encoder", flush=True)
        found[codec] = {purpose: size / len(texts) for purpose, size in sizes.items()}
    return found


if __name__ == "__main__":
    main()
