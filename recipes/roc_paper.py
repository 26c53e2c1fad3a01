"""RoC as published, on coCondenser. Its ablations, CLEAR and BERT-base are variants."""

from counterpoint.encode import Cls, DualEncoder, Encoder, TextInput, Transformer
from counterpoint.learn import BM25Negatives, BM25Terms, Contrastive, Orthogonality, ResidualMargin, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot

text = TextInput(256)
encoder = Encoder(Transformer("Luyu/co-condenser-marco"), {"cls": Cls()}, query=text, document=text)
bert = Encoder(Transformer("google-bert/bert-base-uncased"), {"cls": Cls()}, query=text, document=text)

# λ = 1.5 is published for MS MARCO with Pyserini's BM25. The paper does not say whether that BM25 has
# the factor k1 + 1 of its formula. Ours has not, like today's Lucene (docs/roc.md).
recipe = Recipe(
    name="roc-paper",
    paper="Lee et al. 2023, On complementarity objectives for hybrid retrieval",
    about="one [CLS] vector a text, to be added to BM25: RoC as it was published, and its ablations",
    model=Model(DualEncoder(encoder), search={"weights": {"lexical": 1.0, "cls": 1.5}, "scale": "none"}),
    stages=[
        Train(
            Contrastive() + Orthogonality("cls"),
            Dot("cls"),
            epochs=10,
            batch=10,
            negatives=(BM25Negatives(count=1),),
            lexical=BM25Terms(),
            mask_matches=0.15,
            lr=2e-5,
            weight_decay=0.0,
            clip=1.0,
        )
    ],
    measures=("AP", "R@100", "RR@10"),
)
nll = [f"stages.train.objective={Contrastive().to_dict()}", "stages.train.lexical=None"]
clear = [f"stages.train.objective={ResidualMargin().to_dict()}"]
whole = ["stages.train.mask_matches=0"]
dpr = [f"model.encoder.{side}={bert.to_dict()}" for side in ("query", "document")]
ablations = {"embedding": whole, "input": nll, "naive": [*nll, *whole], "clear": [*clear, *whole]}
variants = {**ablations, "dpr": dpr, **{f"dpr-{name}": [*dpr, *said] for name, said in ablations.items()}}
