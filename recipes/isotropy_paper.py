"""Isotropic DR as published: ColBERT on BERT-base without a projection, then a map of its tokens."""

from counterpoint.encode import PUNCTUATION, DualEncoder, Encoder, TextInput, TokenVectors, Transformer
from counterpoint.learn import Fit, FromData, PairwiseSoftmax, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import MaxSim
from counterpoint.transform import Glow, Nice, Normalise, Whitening

encoder = Encoder(
    Transformer("google-bert/bert-base-uncased"),
    heads={"tokens": TokenVectors(skip=PUNCTUATION)},
    query=TextInput(21, marker="[unused0]", expand_to=21),  # [CLS] and 20, as in the released code
    document=TextInput(512, marker="[unused1]"),
)
# The rate is from the released scripts; the paper prints 1e-4. Robust04, ClueWeb09b: 30 epochs of 64 steps.
# MS MARCO: 10 epochs of 1024 steps, and RR chooses the best one (docs/isotropy.md).
finetune = Train(
    PairwiseSoftmax(),
    MaxSim("tokens", normalise=True),
    steps=30 * 64,
    batch=16,
    chunk=8,
    negatives=(FromData(count=1),),
    lr=1e-5,
    weight_decay=0.0,
    warmup=0,
    schedule="constant",
    clip=None,
    evaluate_every=64,
)

recipe = Recipe(
    name="isotropy-paper",
    paper="Jung et al. 2023, Isotropic representation can improve dense retrieval",
    about="ColBERT on BERT-base without a projection, then whitening; by variants another map or none",
    model=Model(
        DualEncoder(encoder),
        transforms={"tokens": [Whitening(768), Normalise()]},
        search={"weights": {"tokens": 1.0}},
    ),
    stages=[finetune, Fit("tokens", documents=10 * 64 * 16 * 2, queries=True)],  # ten epochs of triples
    measures=("P@20", "nDCG@10"),
)
maps = {"nice": Nice(768), "glow": Glow(768)}
mapped = {name: [part.to_dict(), Normalise().to_dict()] for name, part in maps.items()}
variants = {
    "finetuned": [f"stages={[finetune.to_dict()]}", f"model.transforms.tokens={[Normalise().to_dict()]}"],
    **{name: [f"model.transforms.tokens={steps}"] for name, steps in mapped.items()},
}
