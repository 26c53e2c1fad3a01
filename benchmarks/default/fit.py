"""Fit the map of the default model's word vectors, as shipped in counterpoint/resources.

    python -m benchmarks.default.fit DATA -o src/counterpoint/resources/minilm-words.safetensors

DATA holds the five training collections in BEIR layout. From each, documents spread evenly over the corpus
are encoded, and 30,000 of their word vectors drawn; whitening is fitted on all 150,000 together, so that
every collection counts alike. No query and no evaluation collection takes part. `--leave-out FOLDER` also
writes FOLDER/NAME.safetensors for each of them, fitted on the four others. With these, weights are compared
on a collection whose documents its map has not seen (`benchmarks.default.weights --maps FOLDER`).
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from benchmarks.common import parser_of
from safetensors.torch import save_file

from counterpoint.data import open_collection
from counterpoint.encode import DualEncoder, Encoder, TextInput, Transformer, WholeWords
from counterpoint.presets import DIM, RANK
from counterpoint.transform import Whitening

DOCUMENTS = {
    "squad11-dev": 2067,
    "nq-qed": 4000,
    "medquad": 3000,
    "acl-title-abstract": 5000,
    "arxiv-title-abstract": 5000,
}
ROWS = 30_000


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--leave-out", type=Path, metavar="FOLDER", help="also a map without each collection")
    options = parser.parse_args()
    text = TextInput(max_length=512)
    heads = {"words": WholeWords(drop_punctuation=True)}
    encoder = DualEncoder(Encoder(Transformer("minilm"), heads, query=text, document=text)).setup().eval()
    drawn = dict(word_vectors(options.data, encoder))
    save(drawn.values(), options.output)
    if options.leave_out:
        options.leave_out.mkdir(parents=True, exist_ok=True)
        for name in drawn:
            others = [rows for other, rows in drawn.items() if other != name]
            save(others, options.leave_out / f"{name}.safetensors")


def save(rows: Iterable[np.ndarray], path: Path) -> None:
    """Fit the map on some word vectors, and write it."""
    whitening = Whitening(DIM, rank=RANK, normalise=True).fit(rows)
    save_file(whitening.state_dict(), path)
    print(f"{path}: {whitening.kept} directions from {int(whitening.count_):,} word vectors", flush=True)


def word_vectors(data: Path, encoder: DualEncoder) -> Iterator[tuple[str, np.ndarray]]:
    """The vectors drawn of each collection, by its name."""
    rng = np.random.default_rng(0)
    for name, wanted in DOCUMENTS.items():
        total = sum(1 for _ in open_collection(data / name).documents())
        chosen = set(np.linspace(0, total - 1, wanted).astype(int).tolist())
        documents = open_collection(data / name).documents()
        texts = [document.full_text for i, document in enumerate(documents) if i in chosen]
        vectors = encoder.encode_document(texts)["words"].values
        print(f"{name}: {len(texts):,} documents, {len(vectors):,} word vectors", flush=True)
        yield name, vectors[np.sort(rng.choice(len(vectors), ROWS, replace=False))]


if __name__ == "__main__":
    main()
