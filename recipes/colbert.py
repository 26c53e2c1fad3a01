"""ColBERT for a CPU: MiniLM, 128 components per token, in-batch and BM25 negatives."""

from counterpoint.encode import PUNCTUATION as SIGNS
from counterpoint.encode import DualEncoder, Encoder, Linear, TextInput, TokenVectors, Transformer
from counterpoint.learn import BM25Negatives, Contrastive, Train
from counterpoint.model import Model
from counterpoint.recipe import DataSettings, Recipe
from counterpoint.score import MaxSim

tokens = TokenVectors(skip=SIGNS, projection=Linear(128, bias=False), normalise=True)
encoder = Encoder(
    Transformer("minilm"), heads={"tokens": tokens}, query=TextInput(32), document=TextInput(180)
)

recipe = Recipe(
    name="colbert",
    paper="Khattab and Zaharia 2020, ColBERT: efficient and effective passage search",
    about="ColBERT on the embedded MiniLM, for a CPU: some minutes on a small collection",
    model=Model(DualEncoder(encoder), search={"weights": {"tokens": 1.0}}),
    stages=[
        Train(
            Contrastive(scale=8.0),  # 1 widens margins of well-ranked documents at the cost of others
            MaxSim("tokens"),
            steps=100,
            batch=16,
            negatives=(BM25Negatives(count=1),),
            lr=2e-5,
            evaluate_every=25,
        )
    ],
    data=DataSettings(held_out=300),  # with 100 queries, one more hit changes a measure by .01
)
at = "model.encoder.query"
variants = {
    "marked": [f"{at}.query.marker=[unused0]", f"{at}.query.expand_to=32", f"{at}.document.marker=[unused1]"],
    "beir": [f"{at}.document.max_length=300"],  # HIL's table 9
}
