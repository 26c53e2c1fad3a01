"""RepBERT on BERT-base as trained by Isotropic DR. Maps, levels and RepBERT's own loss are variants."""

from counterpoint.encode import DualEncoder, Encoder, Mean, TextInput, Transformer
from counterpoint.learn import Fit, FromData, MultiLabelMargin, PairwiseSoftmax, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot
from counterpoint.transform import Glow, Nice, Normalise, Whitening

bert, plain, cosine = Transformer("google-bert/bert-base-uncased"), Mean(), Mean(normalise=True)
encoder = Encoder(bert, {"mean": cosine}, query=TextInput(22), document=TextInput(512))
# As in isotropy-paper: the released scripts' rate (the paper prints 1e-4), and the steps of Robust04.
settings = {"batch": 16, "chunk": 16, "lr": 1e-5, "weight_decay": 0.0, "warmup": 0, "clip": None}
negatives = (FromData(count=1),)
finetune = Train(
    PairwiseSoftmax(), Dot("mean", normalise=True), steps=1920, negatives=negatives, schedule="constant",
    evaluate_every=64, **settings,
)  # fmt: skip
# Zhan et al. 2020: inner products, 26 documents of 13 triples, two such batches per step, one epoch.
published = {"batch": 13, "accumulate": 2, "lr": 3e-6, "warmup": 10_000, "evaluate_every": 5000}
margin = Train(MultiLabelMargin(), Dot("mean"), negatives=negatives, **published)
long = Encoder(bert, {"mean": plain}, query=TextInput(22), document=TextInput(258))

recipe = Recipe(
    name="repbert-paper",
    paper="Jung et al. 2023, Isotropic representation can improve dense retrieval",
    about="the mean of a text's tokens by cosine; with a map of either level, or RepBERT's loss, by variants",
    model=Model(DualEncoder(encoder), search={"weights": {"mean": 1.0}, "scale": "none"}),
    stages=[finetune],
    measures=("P@20", "nDCG@10", "RR@10"),
)
head, fitted = "model.encoder.query.heads.mean", {"documents": 20_480, "queries": True}
per_token = [finetune.to_dict(), Fit("mean", what="tokenwise", **fitted).to_dict()]
per_text = [finetune.to_dict(), Fit("mean", **fitted).to_dict()]
variants = {
    "margin": [
        f"model.encoder.query={long.to_dict()}", f"stages={[margin.to_dict()]}",
        "measures=['RR@10', 'R@1000']",
        "paper=Zhan et al. 2020, RepBERT: contextualized text embeddings for first-stage retrieval",
        "about=the mean of a text's tokens by inner product, trained on a margin to the batch",
    ]
}  # fmt: skip
for name, part in {"whitening": Whitening(768), "nice": Nice(768), "glow": Glow(768)}.items():
    steps, last = [part.to_dict()], Normalise().to_dict()
    variants[f"{name}-token"] = [f"{head}.tokenwise={steps}", f"stages={per_token}"]
    behind = [f"{head}.normalise=False", f"model.transforms={{'mean': {[*steps, last]}}}"]
    variants[f"{name}-sequence"] = [*behind, f"stages={per_text}"]
