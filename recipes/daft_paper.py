"""DAFT as published: a query encoder of two layers is first aligned with a deep document encoder."""

from dataclasses import replace

from counterpoint.encode import Cls, DualEncoder, Encoder, Linear, Mean, Stack, TextInput, Transformer, Unit
from counterpoint.learn import AlignmentStop, CachedContrastive, NegativeCache, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot

BERT, LIGHT = "google-bert/bert-base-uncased", "google/bert_uncased_L-{}_H-768_A-12"  # Turc et al. 2019


def tower(source: str) -> Encoder:
    """A language model and its first hidden state."""
    return Encoder(Transformer(source), {"cls": Cls()}, query=TextInput(32), document=TextInput(256))


projection = {"cls": Stack([Linear(512), Unit()])}  # one space for both sides
shared = {"batch": 48, "lr": 1e-5, "warmup": 1000, "schedule": "constant", "epochs": 10}
shared |= {"cache": NegativeCache(size=512_000, groups=64, scale=20.0)}
search = {"weights": {"cls": 1.0}, "scale": "none"}
loss, query, learn = CachedContrastive(scale=20.0), "model.encoder.query", ("query.*",)
align = Train(loss, name="align", learn=learn, stop=AlignmentStop(patience=3), keep="last", **shared)
tune = Train(loss, name="fine-tune", **shared)  # no early stopping, the best of ten epochs (section 5.3.1)

recipe = Recipe(
    name="daft-paper",
    paper="Leonhardt et al. 2022, Distribution-aligned fine-tuning for efficient neural retrieval",
    about="a light query encoder beside a heavy document encoder, aligned, then fine-tuned with a cache",
    model=Model(DualEncoder(tower(LIGHT.format(2)), tower(BERT), projection), search=search),
    scorer=Dot("cls"),
    stages=[align, tune],
    measures=("nDCG@10", "RR@10", "R@1000"),
)
turns = replace(tune, epochs=20, alternate=("query.*", "document.*"))  # one encoder per batch (section 4)
others = {"roberta": "FacebookAI/roberta-base", "mpnet": "microsoft/mpnet-base"}  # table 1
others |= {"condenser": "Luyu/condenser", "cocondenser": "Luyu/co-condenser-marco"}
alone = f"stages={[tune.to_dict()]}"
variants = {
    "alternating": [f"stages={[turns.to_dict()]}"],
    "unaligned": [alone],
    **{name: [f"model.encoder.document.backbone.source={other}"] for name, other in others.items()},
    **{f"layers-{n}": [f"{query}.backbone.source={LIGHT.format(n)}"] for n in (4, 6, 8, 10)},  # table 2
    "layers-12": [f"{query}.backbone.source={BERT}", alone],  # equal encoders need no alignment
    "without-projection": [f"model.encoder.shared={ {'cls': Unit().to_dict()} }"],  # table 3, and below
    "random": [f"{query}.backbone.random=true"],
    "no-attention": [f"{query}.backbone.layers=0", f"{query}.heads={ {'cls': Mean().to_dict()} }"],
}
