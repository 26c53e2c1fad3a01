"""DAFT as it was published: a query encoder of two layers is aligned with a deep document encoder first."""

from dataclasses import replace

from counterpoint.encode import Cls, DualEncoder, Encoder, Linear, Mean, Stack, TextInput, Transformer, Unit
from counterpoint.learn import AlignmentStop, CachedContrastive, NegativeCache, Train
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
# No early stop: ten epochs, and the best checkpoint of them (section 5.3.1).
fine_tune = Train(CachedContrastive(scale=20.0), name="fine-tune", epochs=10, cache=cache, **shared)

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
        fine_tune,
    ],
    measures=("nDCG@10", "RR@10", "R@1000"),
)
documents = "model.encoder.document.backbone.source"
alternating = replace(fine_tune, epochs=20, alternate=("query.*", "document.*"))
variants = {
    # In place of an alignment stage: one encoder a batch (section 4), as many epochs as both stages have.
    "alternating": [f"stages={[alternating.to_dict()]}"],
    # The other document encoders of table 1; the query encoder stays BERT's first two layers.
    "roberta": [f"{documents}=FacebookAI/roberta-base"],
    "condenser": [f"{documents}=Luyu/condenser"],
    "cocondenser": [f"{documents}=Luyu/co-condenser-marco"],
    "mpnet": [f"{documents}=microsoft/mpnet-base"],
    # Table 2: query encoders of more layers. With all twelve both are alike, and nothing is to be aligned.
    **{f"layers-{n}": [f"model.encoder.query.backbone.layers={n}"] for n in (4, 6, 8, 10)},
    "layers-12": ["model.encoder.query.backbone.layers=12", f"stages={[fine_tune.to_dict()]}"],
    # Table 3: what is left out of the query encoder, or between both.
    "without-projection": [f"model.encoder.shared={ {'cls': Unit().to_dict()} }"],
    "random": ["model.encoder.query.backbone.random=true"],
    "no-attention": [
        "model.encoder.query.backbone.layers=0",
        f"model.encoder.query.heads={ {'cls': Mean().to_dict()} }",
    ],
}
