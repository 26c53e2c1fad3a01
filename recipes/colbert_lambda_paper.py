"""ColBERT-λ as published: ColBERT-iso and ColBERT-aniso, each on a BERT-base, with summed scores."""

from counterpoint.encode import PUNCTUATION as SIGNS
from counterpoint.encode import DualEncoder, Encoder, Linear, TextInput, TokenVectors, Transformer
from counterpoint.learn import CosReg, FromData, InterIso, IStar, PairwiseCrossEntropy, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import MaxSim

heads = {
    on: TokenVectors(skip=SIGNS, projection=Linear(128, bias=False), normalise=True)
    for on in ("iso", "aniso")
}
query = TextInput(32, marker="[unused0]", expand_to=32)
document = TextInput(180, marker="[unused1]")
own = {"aniso": Transformer("google-bert/bert-base-uncased")}
encoder = Encoder(Transformer("google-bert/bert-base-uncased"), heads, query, document, own=own)
iso, aniso = MaxSim("iso"), MaxSim("aniso")
late = PairwiseCrossEntropy("late_iso", iso) + PairwiseCrossEntropy("late_aniso", aniso)

recipe = Recipe(
    name="colbert-lambda-paper",
    paper="Kim, Lee and Hwang 2024, HIL: hybrid isotropy learning for zero-shot performance",
    about="the λ-ensemble of ColBERT-iso and ColBERT-aniso, and by variants those of CosReg and I-STAR",
    model=Model(DualEncoder(encoder), search={"weights": {"iso": 1.0, "aniso": 1.0}, "scale": "none"}),
    scorer=iso + aniso,
    stages=[
        Train(
            late + InterIso("iso", 0.4, name="reg_iso") + InterIso("aniso", -0.1, name="reg_aniso"),
            negatives=(FromData(count=1),),
            **{"steps": 200_000, "batch": 32, "lr": 3e-6, "weight_decay": 0.0, "warmup": 0},
            **{"schedule": "constant", "evaluate_every": 10_000},
            clip=None,  # one norm over both models; without it each learns as it would alone
        ),
    ],
)
losses = "stages.train.objective.losses"
variants = {
    "cosreg": [f"{losses}.reg_iso={CosReg('iso', 0.2).to_dict()}"]
    + [f"{losses}.reg_aniso={CosReg('aniso', -0.1).to_dict()}"],
    "istar": [f"{losses}.reg_iso={IStar('iso', 0.2).to_dict()}"]
    + [f"{losses}.reg_aniso={IStar('aniso', -0.6).to_dict()}"],
}
