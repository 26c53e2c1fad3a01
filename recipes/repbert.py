"""RepBERT for a CPU: mean-pooled MiniLM with Isotropic DR's loss. Each map and level is a variant."""

from counterpoint.encode import DualEncoder, Encoder, Mean, TextInput, Transformer
from counterpoint.learn import BM25Negatives, Fit, MultiLabelMargin, PairwiseSoftmax, Train
from counterpoint.model import Model
from counterpoint.recipe import DataSettings, Recipe
from counterpoint.score import Dot
from counterpoint.transform import FlowTraining, Glow, Nice, Normalise, Whitening

encoder = Encoder(
    Transformer("minilm"), {"mean": Mean(normalise=True)}, query=TextInput(32), document=TextInput(180)
)
finetune = Train(
    PairwiseSoftmax(),
    20.0
    * Dot(
        "mean", normalise=True
    ),  # with the paper's factor 1, cosines differ too little for 100 steps to matter
    steps=100,
    batch=16,
    negatives=(BM25Negatives(count=1),),
    lr=2e-5,
    evaluate_every=50,
)

recipe = Recipe(
    name="repbert",
    paper="Jung et al. 2023, Isotropic representation can improve dense retrieval",
    about="RepBERT's mean of a text's tokens from MiniLM, for a CPU; with a map of either level by variants",
    model=Model(DualEncoder(encoder), search={"weights": {"mean": 1.0}}),
    stages=[finetune],
    data=DataSettings(held_out=300),
)
# Some components of MiniLM are constant and have no density, so flows get the leading directions.
turn, short = Whitening(384, rank=380, power=0.0), FlowTraining(steps=300)
maps = {
    "whitening": [Whitening(384)],
    "nice": [turn, Nice(380, layers=1, width=256, fitting=short)],
    "glow": [turn, Glow(380, fitting=short)],
}
head, data = "model.encoder.query.heads.mean", {"documents": 2000, "queries": True}
per_token = [finetune.to_dict(), Fit("mean", what="tokenwise", **data).to_dict()]
per_text = [finetune.to_dict(), Fit("mean", **data).to_dict()]
variants = {"margin": [f"stages.train.objective={MultiLabelMargin().to_dict()}"]}
for name, parts in maps.items():
    steps, last = [part.to_dict() for part in parts], Normalise().to_dict()
    variants[f"{name}-token"] = [f"{head}.tokenwise={steps}", f"stages={per_token}"]
    behind = [f"{head}.normalise=False", f"model.transforms={{'mean': {[*steps, last]}}}"]
    variants[f"{name}-sequence"] = [*behind, f"stages={per_text}"]
