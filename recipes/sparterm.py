"""SparTerm for a CPU: weights of the text's own terms, and of further terms that a gate admits."""

from counterpoint.encode import DualEncoder, Encoder, Router, SparseTerms, TextInput, Transformer
from counterpoint.learn import BM25Negatives, Contrastive, TermSparsity, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import MaxSim

terms = SparseTerms(Router(start="new", bias=0.0), Router(start="new"), expansion=(0, 32))
encoder = Encoder(Transformer("minilm"), {"terms": terms}, query=TextInput(32), document=TextInput(180))
search = {"weights": {"terms": 1.0}, "scale": "none", "exact": ["terms"]}

recipe = Recipe(
    name="sparterm",
    paper="Bai et al. 2020, SparTerm: learning term-based sparse representation for fast text retrieval",
    about="learned sparse: weights of a text's terms and of up to 32 others, in an inverted index",
    model=Model(DualEncoder(encoder), search=search, codec="float16"),
    scorer=MaxSim("terms", exact=True, floor0=True),
    stages=[
        Train(
            Contrastive() + 1e-3 * TermSparsity("terms"),
            steps=300,
            batch=16,
            chunk=16,
            negatives=(BM25Negatives(count=1),),
            lr=5e-5,
            lr_factors={"query.heads.*": 20.0},
            evaluate_every=100,
        )
    ],
)
variants = {
    "input": ["stages.0.mask_matches=0.15"],
    "literal": ["model.encoder.query.heads.terms.gate=none"],
    "literal-input": ["model.encoder.query.heads.terms.gate=none", "stages.0.mask_matches=0.15"],
}
