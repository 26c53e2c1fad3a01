"""DAFT as it was published: a query encoder of two layers is aligned with a deep document encoder first."""

from counterpoint.encode import Cls, DualEncoder, Encoder, Linear, Stack, TextInput, Transformer, Unit
from counterpoint.learn import AlignmentStop, CachedContrastive, NegativeCache, NoImprovement, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot


def tower(layers: int | None) -> Encoder:
    """BERT-base, or its first layers, and the first hidden state."""
    backbone = Transformer("google-bert/bert-base-uncased", layers=layers)
    return Encoder(backbone, {"cls": Cls()}, query=TextInput(32), document=TextInput(256))


projection = {"cls": Stack([Linear(512), Unit()])}  # into one space, the same for both sides
shared = {"batch": 48, "lr": 1e-5, "warmup": 1000, "schedule": "constant"}
cache = NegativeCache(size=512_000, candidates=64, scale=20.0)

recipe = Recipe(
    name="daft-paper",
    paper="Leonhardt et al. 2022, Distribution-aligned fine-tuning for efficient neural retrieval",
    about="a light query encoder beside a heavy document encoder, aligned, then fine-tuned with a cache",
    model=Model(
        DualEncoder(tower(2), tower(None), projection), search={"weights": {"cls": 1.0}, "scale": "none"}
    ),
    scorer=Dot("cls"),
    stages=[
        Train(
            CachedContrastive(scale=20.0),
            name="align",
            epochs=10,
            cache=cache,
            learn=("query.*",),
            stop=AlignmentStop(patience=3),
            keep="last",
            **shared,
        ),
        Train(
            CachedContrastive(scale=20.0),
            name="fine-tune",
            epochs=10,
            cache=cache,
            stop=NoImprovement("nDCG@10", patience=3),
            **shared,
        ),
    ],
    measures=("nDCG@10", "RR@10", "R@1000"),
)
