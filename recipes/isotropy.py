"""Isotropic DR for a CPU: trains ColBERT without a projection, then whitens every token vector."""

from counterpoint.encode import PUNCTUATION, DualEncoder, Encoder, TextInput, TokenVectors, Transformer
from counterpoint.learn import BM25Negatives, Contrastive, Fit, Train
from counterpoint.model import Model
from counterpoint.recipe import DataSettings, Recipe
from counterpoint.score import MaxSim
from counterpoint.transform import FlowTraining, Glow, Nice, Normalise, Whitening

tokens = TokenVectors(skip=PUNCTUATION)  # whitened at their own lengths; training uses cosines
encoder = Encoder(
    Transformer("minilm"), heads={"tokens": tokens}, query=TextInput(32), document=TextInput(180)
)
late = Train(
    Contrastive(scale=8.0),
    MaxSim("tokens", normalise=True),
    steps=100,
    batch=16,
    negatives=(BM25Negatives(count=1),),
    lr=2e-5,
    evaluate_every=25,
)

recipe = Recipe(
    name="isotropy",
    paper="Jung et al. 2023, Isotropic representation can improve dense retrieval",
    about="ColBERT on MiniLM without a projection, then whitening; by variants another map or none",
    model=Model(
        DualEncoder(encoder),
        transforms={"tokens": [Whitening(384), Normalise()]},
        search={"weights": {"tokens": 1.0}},
    ),
    stages=[late, Fit("tokens", documents=2000, queries=True)],
    data=DataSettings(held_out=300),
)
# Some components of MiniLM are constant and have no density, so flows get the leading directions.
turn, short = Whitening(384, rank=380, power=0.0), FlowTraining(steps=300)
flows = {"nice": Nice(380, layers=1, width=256, fitting=short), "glow": Glow(380, fitting=short)}
steps = {name: [part.to_dict() for part in (turn, flow, Normalise())] for name, flow in flows.items()}
variants = {
    "finetuned": [f"stages={[late.to_dict()]}", f"model.transforms.tokens={[Normalise().to_dict()]}"],
    **{name: [f"model.transforms.tokens={some}"] for name, some in steps.items()},
}
