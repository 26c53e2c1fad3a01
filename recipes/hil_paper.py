"""HIL as published, on BERT-base with ColBERT's settings. Its ablations are variants."""

from counterpoint.encode import PUNCTUATION as SIGNS
from counterpoint.encode import DualEncoder, Encoder, Linear, Static, TextInput, TokenVectors, Transformer
from counterpoint.learn import Fit, FromData, InterIso, PairwiseCrossEntropy, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import MaxSim, ZScore

heads = {
    "l": Static(skip=SIGNS, projection=Linear(128, bias=False), normalise=True),
    "h": TokenVectors(skip=SIGNS, projection=Linear(128, bias=False), normalise=True),
}
query, document = TextInput(32, marker="[unused0]", expand_to=32), TextInput(180, marker="[unused1]")
encoder = Encoder(Transformer("google-bert/bert-base-uncased"), heads, query, document)
search = {"weights": {"l": 1.0, "h": 1.0}, "idf": {"l": 1.0}, "scale": "none"}
low, high = ZScore(MaxSim("l", idf=1.0)), ZScore(MaxSim("h"))
late = PairwiseCrossEntropy("l", low) + PairwiseCrossEntropy("h", high)
regularisers = InterIso("l", 0.3, True, name="iso_l") + InterIso("h", -0.3, False, name="iso_h")

recipe = Recipe(
    name="hil-paper",
    paper="Kim, Lee and Hwang 2024, HIL: hybrid isotropy learning for zero-shot performance",
    about="isotropic word embeddings (L) beside anisotropic contextual vectors (H)",
    model=Model(DualEncoder(encoder), search=search),
    scorer=low + high,
    stages=[
        Fit("l", what="idf", name="idf", documents=None),
        Train(
            late + regularisers,
            negatives=(FromData(count=1),),
            **{"steps": 200_000, "batch": 32, "lr": 3e-6, "weight_decay": 0.0, "warmup": 0},
            **{"schedule": "constant", "clip": 2.0, "evaluate_every": 10_000},
        ),
    ],
    start_names={"query.heads.tokens.": "query.heads.h."},  # for start=, the run of a ColBERT
)
terms, raw_l, raw_h = "stages.train.objective", low.of.to_dict(), high.of.to_dict()
variants = {
    "without-regularisers": [f"{terms}.weights=[1, 1, 0, 0]"],
    "without-reg-l": [f"{terms}.weights=[1, 1, 0, 1]"],
    "without-reg-h": [f"{terms}.weights=[1, 1, 1, 0]"],
    "without-idf": ["scorer.parts.0.of.idf=0", f"{terms}.losses.0.scorer.of.idf=0", "model.search.idf={}"],
    "without-zscore": [f"scorer.parts.0={raw_l}", f"scorer.parts.1={raw_h}"]
    + [f"{terms}.losses.0.scorer={raw_l}", f"{terms}.losses.1.scorer={raw_h}"],
    "l-only": [f"scorer={low.to_dict()}", "model.search.weights={'l': 1}", f"{terms}.weights=[1, 0, 1, 0]"],
    "h-only": [f"scorer={high.to_dict()}", "model.search.weights={'h': 1}", f"{terms}.weights=[0, 1, 0, 1]"],
    "beir": ["model.encoder.query.document.max_length=300"],  # table 9
    "from-colbertv2": ["stages.train.steps=150", "stages.train.evaluate_every=50"],  # start=, table 8
}
