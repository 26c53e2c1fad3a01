"""HIL for a CPU: MiniLM's word embeddings (L) and its last states (H), 128 components each."""

from counterpoint.encode import PUNCTUATION as SIGNS
from counterpoint.encode import DualEncoder, Encoder, Linear, Static, TextInput, TokenVectors, Transformer
from counterpoint.learn import BM25Negatives, Fit, InterIso, PairwiseCrossEntropy, Train
from counterpoint.model import Model
from counterpoint.recipe import DataSettings, Recipe
from counterpoint.score import MaxSim, ZScore

heads = {
    "l": Static(skip=SIGNS, projection=Linear(128, bias=False), normalise=True),
    "h": TokenVectors(skip=SIGNS, projection=Linear(128, bias=False), normalise=True),
}
encoder = Encoder(Transformer("minilm"), heads, query=TextInput(32), document=TextInput(180))
low, high = ZScore(MaxSim("l", idf=1.0)), ZScore(MaxSim("h"))

recipe = Recipe(
    name="hil",
    paper="Kim, Lee and Hwang 2024, HIL: hybrid isotropy learning for zero-shot performance",
    about="an isotropic space of word embeddings beside an anisotropic one of contextual vectors, for a CPU",
    model=Model(
        DualEncoder(encoder), search={"weights": {"l": 1.0, "h": 1.0}, "idf": {"l": 1.0}, "scale": "none"}
    ),
    scorer=low + high,
    stages=[
        Fit("l", what="projection", name="fit-l", documents=2000),
        Fit("l", what="idf", name="idf", documents=None),
        Train(
            PairwiseCrossEntropy("l", low)
            + PairwiseCrossEntropy("h", high)
            + InterIso("l", 0.3, absolute=True, name="iso_l")
            + InterIso("h", -0.3, absolute=False, name="iso_h"),
            steps=100,
            batch=16,
            negatives=(BM25Negatives(count=1),),
            lr=2e-5,
            evaluate_every=25,
        ),
    ],
    data=DataSettings(held_out=300),
    start_names={"query.heads.tokens.": "query.heads.h."},  # start=runs/colbert
)
at = "model.encoder.query"
variants = {
    "marked": [f"{at}.query.marker=[unused0]", f"{at}.query.expand_to=32", f"{at}.document.marker=[unused1]"],
    "beir": [f"{at}.document.max_length=300"],  # HIL's table 9
}
