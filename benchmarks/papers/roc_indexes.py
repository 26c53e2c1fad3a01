"""An index of a collection for each row of `roc.py`, kept for another evaluation.

Rows of which only the top layers were trained have the lower ones in common: a text passes these once, and
every row's own layers go on from there. The vectors are those that each row's model makes by itself.
"""

from contextlib import contextmanager

import numpy as np
from benchmarks.common import folder_of
from benchmarks.papers.roc_rows import NAIVE, START, Budget, rows
from torch import equal, nn

from counterpoint.encode import DualEncoder, Encoder, TextInput
from counterpoint.index import Index, build_index
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.types import Ragged

WEIGHTS = {"lexical": 1.0, "mean": 1.0}
PIECE = 512  # texts that pass the lower layers before the upper ones follow


class Recorded(nn.Module):
    """A layer whose outputs are kept, batch by batch."""

    def __init__(self, layer, kept):
        super().__init__()
        self.layer, self.kept = layer, kept

    def forward(self, *given, **named):
        self.kept.append(self.layer(*given, **named))
        return self.kept[-1]


class Replayed(nn.Module):
    """In place of layers: what another model's have made of the same batches."""

    def __init__(self, kept):
        super().__init__()
        self.kept, self.batch = kept, 0

    def forward(self, *_, **__):
        self.batch += 1
        return self.kept[self.batch - 1]


class SharedRows:
    """Encodes texts with several rows, which it takes apart.

    Args:
        models: by row.
    """

    def __init__(self, models):
        self.models, self.kept, self.replayed = models, [], []
        depth = layers_alike(list(models.values()))
        for number, model in enumerate(models.values() if depth else ()):
            stack = model.encoder.query.backbone.model_.encoder
            if number == 0:
                stack.layer[depth - 1] = Recorded(stack.layer[depth - 1], self.kept)
            else:
                self.replayed.append(Replayed(self.kept))
                stack.layer = nn.ModuleList([self.replayed[-1], *stack.layer[depth:]])

    def encode(self, texts):
        """Row to the texts' vectors."""
        self.kept.clear()
        for layer in self.replayed:
            layer.batch = 0
        return {row: model.encode_document(texts)["mean"].values for row, model in self.models.items()}


def layers_alike(models):
    """How many layers, from the first, have the same weights in all models; 0 where embeddings differ."""
    first, *others = (model.encoder.query.backbone.model_ for model in models)
    if not all(same(first.embeddings, other.embeddings) for other in others):
        return 0
    for depth, layer in enumerate(first.encoder.layer):
        if not all(same(layer, other.encoder.layer[depth]) for other in others):
            return depth
    return len(first.encoder.layer)


def same(part, other):
    weights = other.state_dict()
    return all(equal(weights[name], value) for name, value in part.state_dict().items())


class Known:
    """A model that has the vectors of some texts already, and makes the others."""

    def __init__(self, model, vectors):
        self.model, self.vectors = model, vectors

    def __getattr__(self, name):
        return getattr(self.model, name)

    def encode_counted(self, texts, progress=None):
        new, made, longer = [text for text in texts if text not in self.vectors], iter(()), 0
        if new:
            encoded, longer = self.model.encode_counted(new, progress)
            made = iter(encoded["mean"].values)
        found = [self.vectors[text] if text in self.vectors else next(made) for text in texts]
        return {"mean": Ragged(np.stack(found), np.arange(len(texts) + 1))}, longer


def row_model(row, output):
    """A row's model, for documents of the length that abstracts have; `start` is what all rows start from."""
    model = (rows(Budget())[NAIVE].model if row == START else load_model(folder_of(row, output))).setup()
    query = model.encoder.query
    encoder = Encoder(query.backbone, dict(query.heads), TextInput(64), TextInput(256))
    return Model(DualEncoder(encoder), search={"weights": WEIGHTS}, codec="float16").setup().eval()


def folder_for(row, judged, output):
    return output / "indexes" / judged.name / folder_of(row, output).name


def build(row, judged, output, vectors):
    """Index a collection with a row's model, of which the vectors of some texts are known."""
    model = row_model(row, output)
    documents, settings = judged.collection.documents(), model.index_settings()
    build_index(documents, Known(model, vectors), folder_for(row, judged, output), settings)


def index_rows(rows, judged, output):
    """Build the indexes of a collection that are not there."""
    missing = [row for row in rows if not (folder_for(row, judged, output) / "manifest.json").is_file()]
    if not missing:
        return
    together = SharedRows({row: row_model(row, output) for row in missing})
    texts = list(dict.fromkeys(document.full_text for document in judged.collection.documents()))
    pieces = [together.encode(texts[start : start + PIECE]) for start in range(0, len(texts), PIECE)]
    for row in missing:
        vectors = np.concatenate([made[row] for made in pieces])
        build(row, judged, output, dict(zip(texts, vectors, strict=True)))


def index_changed(rows, judged, output, original):
    """The same of a collection that differs from an indexed one in some documents; only these are encoded."""
    texts = [document.full_text for document in original.collection.documents()]
    for row in rows:
        if not (folder_for(row, judged, output) / "manifest.json").is_file():
            with opened(row, original, output) as (index, _):
                vectors = index.take("mean", np.arange(len(index))).values
            build(row, judged, output, dict(zip(texts, vectors, strict=True)))


@contextmanager
def opened(row, judged, output):
    """The index of a collection with a row's model, and the model."""
    with Index(folder_for(row, judged, output)) as index:
        yield index, row_model(row, output)
