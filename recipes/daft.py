"""DAFT for a CPU: two MiniLM layers for queries, all layers for documents, aligned first."""

from counterpoint.encode import DualEncoder, Encoder, Linear, Mean, Stack, TextInput, Transformer, Unit
from counterpoint.learn import CachedContrastive, NegativeCache, PositiveDistance, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot


def tower(layers: list[int] | None) -> Encoder:
    """MiniLM, or some of its layers, with mean pooling."""
    minilm = Transformer("minilm", layers=layers)
    return Encoder(minilm, {"mean": Mean()}, query=TextInput(32), document=TextInput(180))


projection = {"mean": Stack([Linear(256), Unit()])}  # one shared space for both sides
search = {"weights": {"mean": 1.0}, "scale": "none"}
shared = {"warmup": 20, "schedule": "constant"}
cache = NegativeCache(size=2048, groups=64, scale=20.0)

recipe = Recipe(
    name="daft",
    paper="Leonhardt et al. 2022, Distribution-aligned fine-tuning for efficient neural retrieval",
    about="a query encoder of two layers beside MiniLM whole, for a CPU: aligned by distance, then trained",
    model=Model(DualEncoder(tower([0, 5]), tower(None), projection), search=search),
    scorer=Dot("mean"),
    stages=[
        Train(
            PositiveDistance("mean"),  # to the document encoder's vector of the same query
            name="align",
            steps=300,
            batch=64,
            mirror=True,
            lr=2e-4,
            learn=("query.*",),
            keep="last",
            **shared,
        ),
        Train(
            CachedContrastive(scale=20.0),
            name="fine-tune",
            steps=200,
            batch=16,
            cache=cache,
            lr=2e-5,
            evaluate_every=100,
            **shared,
        ),
    ],
)
