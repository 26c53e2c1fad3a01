"""ColBERT-λ for a CPU: an isotropic and an anisotropic ColBERT, each on a MiniLM, with summed scores."""

from counterpoint.encode import PUNCTUATION as SIGNS
from counterpoint.encode import DualEncoder, Encoder, Linear, TextInput, TokenVectors, Transformer
from counterpoint.learn import BM25Negatives, CosReg, Fit, InterIso, IStar, PairwiseCrossEntropy, Train
from counterpoint.model import Model
from counterpoint.recipe import DataSettings, Recipe
from counterpoint.score import MaxSim

heads = {
    on: TokenVectors(skip=SIGNS, projection=Linear(128, bias=False), normalise=True)
    for on in ("iso", "aniso")
}
own = {"aniso": Transformer("minilm")}
encoder = Encoder(Transformer("minilm"), heads, query=TextInput(32), document=TextInput(180), own=own)
iso, aniso = 8 * MaxSim("iso"), 8 * MaxSim("aniso")  # 8, as in `colbert`
late = PairwiseCrossEntropy("late_iso", iso) + PairwiseCrossEntropy("late_aniso", aniso)

recipe = Recipe(
    name="colbert-lambda",
    paper="Kim, Lee and Hwang 2024, HIL: hybrid isotropy learning for zero-shot performance",
    about="the λ-ensemble: two ColBERTs with a backbone each, one driven apart and one together, for a CPU",
    model=Model(DualEncoder(encoder), search={"weights": {"iso": 1.0, "aniso": 1.0}, "scale": "none"}),
    scorer=iso + aniso,
    stages=[
        *[Fit(on, what="projection", name=f"fit-{on}", documents=2000) for on in heads],
        Train(
            late + InterIso("iso", 0.4, name="reg_iso") + InterIso("aniso", -0.1, name="reg_aniso"),
            **{"steps": 100, "batch": 16, "lr": 2e-5, "evaluate_every": 25},
            negatives=(BM25Negatives(count=1),),
            clip=None,  # one norm over both models; without it each learns as it would alone
        ),
    ],
    data=DataSettings(held_out=300),
)
at, losses = "model.encoder.query", "stages.train.objective.losses"
variants = {
    "marked": [f"{at}.query.marker=[unused0]", f"{at}.query.expand_to=32", f"{at}.document.marker=[unused1]"],
    "cosreg": [f"{losses}.reg_iso={CosReg('iso', 0.2).to_dict()}"]
    + [f"{losses}.reg_aniso={CosReg('aniso', -0.1).to_dict()}"],
    "istar": [f"{losses}.reg_iso={IStar('iso', 0.2).to_dict()}"]
    + [f"{losses}.reg_aniso={IStar('aniso', -0.6).to_dict()}"],
}
