"""DAFT as it was published: a query encoder of two layers is aligned with a deep document encoder first."""

from counterpoint.encode import Cls, DualEncoder, Encoder, Linear, Mean, Stack, TextInput, Transformer, Unit
from counterpoint.learn import AlignmentStop, CachedContrastive, NegativeCache, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot

BERT, LIGHT = "google-bert/bert-base-uncased", "google/bert_uncased_L-{}_H-768_A-12"  # Turc et al. 2019


def tower(source: str, length: int) -> Encoder:
    """A language model and its first hidden state."""
    return Encoder(Transformer(source), {"cls": Cls()}, query=TextInput(32), document=TextInput(length))


projection = {"cls": Stack([Linear(512), Unit()])}  # into one space, the same for both sides
both = DualEncoder(tower(LIGHT.format(2), 256), tower(BERT, 256), projection)
shared = {"epochs": 10, "batch": 48, "lr": 1e-5, "warmup": 1000, "schedule": "constant"}
shared["cache"] = NegativeCache(size=512_000, candidates=64, scale=20.0)
tuned = Train(CachedContrastive(scale=20.0), name="fine-tune", **shared)
aligned = {"name": "align", "learn": ("query.*",), "stop": AlignmentStop(patience=3), "keep": "last"}

recipe = Recipe(
    name="daft-paper",
    paper="Leonhardt et al. 2022, Distribution-aligned fine-tuning for efficient neural retrieval",
    about="a light query encoder beside a heavy document encoder, aligned, then fine-tuned with a cache",
    model=Model(both, search={"weights": {"cls": 1.0}, "scale": "none"}),
    scorer=Dot("cls"),
    stages=[Train(CachedContrastive(scale=20.0), **shared, **aligned), tuned],
    measures=("nDCG@10", "RR@10", "R@1000"),  # the first decides which epoch's model is kept
)
query, document = ("model.encoder.{}.backbone.source={}".format(side, "{}") for side in ("query", "document"))
documents = {"roberta": "FacebookAI/roberta-base", "condenser": "Luyu/condenser"}
documents |= {"cocondenser": "Luyu/co-condenser-marco", "mpnet": "microsoft/mpnet-base"}  # table 1
alone = [f"stages=[{tuned.to_dict()}]"]
embeddings = Encoder(Transformer(BERT, layers=0), {"cls": Mean()}, TextInput(32), TextInput(256))
variants = {
    **{name: [document.format(source)] for name, source in documents.items()},
    **{f"layers-{n}": [query.format(LIGHT.format(n))] for n in (4, 6, 8, 10)},
    "layers-12": [query.format(BERT), *alone],
    "unaligned": alone,
    "alternating": [*alone, "stages.0.epochs=20", "stages.0.alternate=['query.*', 'document.*']"],
    "without-projection": [f"model.encoder.shared.cls={Unit().to_dict()}"],
    "random": ["model.encoder.query.backbone.random=true"],
    "no-attention": [f"model.encoder.query={embeddings.to_dict()}"],
}
