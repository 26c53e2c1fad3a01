"""RoC for a CPU: MiniLM trained to be orthogonal to BM25. Its ablations and CLEAR are variants."""

from counterpoint.encode import DualEncoder, Encoder, Mean, TextInput, Transformer
from counterpoint.learn import BM25Negatives, BM25Terms, Contrastive, Orthogonality, ResidualMargin, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot

encoder = Encoder(
    Transformer("minilm"), {"mean": Mean(normalise=True)}, query=TextInput(64), document=TextInput(256)
)

recipe = Recipe(
    name="roc",
    paper="Lee et al. 2023, On complementarity objectives for hybrid retrieval",
    about="one vector a text that is orthogonal to BM25's, to be added to BM25, for a CPU",
    model=Model(DualEncoder(encoder), search={"weights": {"lexical": 1.0, "mean": 1.0}}),
    stages=[
        Train(
            Contrastive() + Orthogonality("mean"),
            20.0 * Dot("mean"),
            steps=100,
            batch=16,
            negatives=(BM25Negatives(count=1),),
            lexical=BM25Terms(),
            mask_matches=0.15,
            lr=2e-5,
            evaluate_every=50,
        )
    ],
)
# Variants without the loss that `about` names have their own `about`.
hybrid = "to be added to BM25, for a CPU"
nll = [f"stages.train.objective={Contrastive().to_dict()}", "stages.train.lexical=None"]
whole = ["stages.train.mask_matches=0"]
variants = {
    "embedding": whole,
    "input": [*nll, f"about=one vector a text, learnt with some matching words hidden, {hybrid}"],
    "naive": [*nll, *whole, f"about=one vector a text, learnt by the contrastive loss alone, {hybrid}"],
    "clear": [  # its margin is for cosines; scaled by 20, they reach it before any training
        f"stages.train.objective={ResidualMargin().to_dict()}",
        f"stages.train.scorer={Dot('mean').to_dict()}",
        *whole,
        f"about=CLEAR: one vector a text, learnt most where BM25 ranks wrongly, {hybrid}",
    ],
}
