"""Fit the map of the default model's word vectors, as shipped in counterpoint/resources.

    python benchmarks/fit_default.py DATA -o src/counterpoint/resources/minilm-words.safetensors

DATA holds the five training collections in BEIR layout. From each, documents spread evenly over the corpus
are encoded, and 30,000 of their word vectors drawn; whitening is fitted on all 150,000 together, so that
every collection counts alike. No query and no evaluation collection takes part.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    text = TextInput(max_length=512)
    heads = {"words": WholeWords(drop_punctuation=True)}
    encoder = DualEncoder(Encoder(Transformer("minilm"), heads, query=text, document=text)).setup().eval()
    whitening = Whitening(DIM, rank=RANK, normalise=True).fit(word_vectors(options.data, encoder))
    save_file(whitening.state_dict(), options.output)
    print(f"{options.output}: {whitening.kept} directions from {int(whitening.count_):,} word vectors")


def word_vectors(data: Path, encoder: DualEncoder) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(0)
    for name, wanted in DOCUMENTS.items():
        total = sum(1 for _ in open_collection(data / name).documents())
        chosen = set(np.linspace(0, total - 1, wanted).astype(int).tolist())
        documents = open_collection(data / name).documents()
        texts = [document.full_text for i, document in enumerate(documents) if i in chosen]
        vectors = encoder.encode_document(texts)["words"].values
        print(f"{name}: {len(texts):,} documents, {len(vectors):,} word vectors", flush=True)
        yield vectors[np.sort(rng.choice(len(vectors), ROWS, replace=False))]


if __name__ == "__main__":
    main()
