"""ColBERT with a published isotropy regulariser. The default is isotropic, the others are variants."""

from counterpoint.encode import PUNCTUATION as SIGNS
from counterpoint.encode import DualEncoder, Encoder, Linear, TextInput, TokenVectors, Transformer
from counterpoint.learn import CosReg, FromData, InterIso, IStar, PairwiseCrossEntropy, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import MaxSim

tokens = TokenVectors(skip=SIGNS, projection=Linear(128, bias=False), normalise=True)
query = TextInput(32, marker="[unused0]", expand_to=32)
document = TextInput(180, marker="[unused1]")
encoder = Encoder(Transformer("google-bert/bert-base-uncased"), {"tokens": tokens}, query, document)

recipe = Recipe(
    name="colbert-isotropy",
    paper="Kim, Lee and Hwang 2024, HIL: hybrid isotropy learning for zero-shot performance",
    about="ColBERT-iso, and by variants ColBERT-aniso, CosReg and I-STAR, each with the paper's λ",
    model=Model(DualEncoder(encoder), search={"weights": {"tokens": 1.0}}),
    scorer=MaxSim("tokens"),
    stages=[
        Train(
            PairwiseCrossEntropy() + InterIso("tokens", 0.4, name="regulariser"),
            negatives=(FromData(count=1),),
            **{"steps": 200_000, "batch": 32, "lr": 3e-6, "weight_decay": 0.0, "warmup": 0},
            **{"schedule": "constant", "clip": 2.0, "evaluate_every": 10_000},
        ),
    ],
)
term = "stages.train.objective.losses.regulariser"
variants = {
    "aniso": [f"{term}.weight=-0.1"],
    "cosreg-iso": [f"{term}={CosReg('tokens', 0.2).to_dict()}"],
    "cosreg-aniso": [f"{term}={CosReg('tokens', -0.1).to_dict()}"],
    "istar-iso": [f"{term}={IStar('tokens', 0.2).to_dict()}"],
    "istar-aniso": [f"{term}={IStar('tokens', -0.6).to_dict()}"],
}
