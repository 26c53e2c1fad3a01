"""Small training sets for tests, and a strategy that makes others."""

from hypothesis import strategies as st

from counterpoint.learn import Example, TrainingSet

WORDS = ("fox", "dog", "whale", "train", "brown", "quick", "sea", "coast", "box", "night")


def training_set(examples, documents=None, queries=None, **more):
    """A set of (query, positives, negatives[, scores]); texts are the ids unless given."""
    made = [Example(*example) for example in examples]
    documents = documents or {d: f"text of {d}" for e in made for d in (*e.positives, *e.negatives)}
    queries = queries or {e.query: f"what is {e.query}" for e in made}
    return TrainingSet.gather(queries, documents, made, **more)


@st.composite
def training_sets(draw, scored=False):
    """Up to eight documents with texts that may repeat, and examples over them."""
    texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
    documents = {f"d{i}": text for i, text in enumerate(draw(st.lists(texts, min_size=3, max_size=8)))}
    queries = {f"q{i}": text for i, text in enumerate(draw(st.lists(texts, min_size=1, max_size=5)))}
    ids = st.lists(st.sampled_from(sorted(documents)), unique=True, max_size=3)
    examples = []
    for query in draw(st.lists(st.sampled_from(sorted(queries)), min_size=1, max_size=6)):
        positives, negatives = draw(ids.filter(bool)), draw(ids)
        values = st.floats(-5, 5, allow_nan=False)
        known = positives + negatives if scored else draw(ids)
        examples.append(Example(query, tuple(positives), tuple(negatives), {d: draw(values) for d in known}))
    return TrainingSet.gather(queries, documents, examples)
