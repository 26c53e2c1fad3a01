"""mteb tasks that exist in memory only, and what the protocols and our own search say of them."""

import mteb
import torch
from datasets import Dataset
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.sts import AbsTaskSTS

from counterpoint.index import Index, build_index
from counterpoint.measure import evaluate
from counterpoint.search import Searcher
from counterpoint.types import Document

WORDS = "cat dog mat house red blue run sat".split()
TEXTS = [f"the {a} {b} {c}" for a in WORDS[:4] for b in WORDS[4:6] for c in WORDS[6:]]
CORPUS = [
    {"id": f"d{i}", "title": "" if i % 3 else WORDS[i % 8], "text": text} for i, text in enumerate(TEXTS)
]
QUERIES = [{"id": f"q{i}", "text": f"where is the {word}"} for i, word in enumerate(WORDS[:4])]
QRELS = {f"q{i}": {f"d{(5 * i + j) % 16}": j for j in range(5)} for i in range(4)}
LISTED = {
    "q0": ["d3", "d1", "d9"],
    "q1": ["d15", "d5"],
    "q2": ["d14", "d0", "d12", "d10"],
    "q3": ["d2", "d4"],
}
QUIET = {"show_progress_bar": False}

COMMON = {
    "description": "made up",
    "reference": "https://example.org",
    "dataset": {"path": "in memory", "revision": "1"},
    "eval_splits": ["test"],
    "eval_langs": ["eng-Latn"],
    "date": ("2024-01-01", "2024-01-01"),
    "dialect": [],
    "domains": ["Written"],
    "task_subtypes": [],
    "license": "cc-by-4.0",
    "annotations_creators": "derived",
    "sample_creation": "created",
    "bibtex_citation": "",
}


def metadata(kind, score, *, name="Tiny", category="t2t", modalities=("text",)):
    return mteb.TaskMetadata(
        name=name, type=kind, main_score=score, category=category, modalities=list(modalities), **COMMON
    )


def retrieval_task(corpus, queries, qrels, *, top_ranked=None, **changes):
    """A retrieval task from rows (`id`, `title`, `text`; `id`, `text`, `instruction`) and judgements."""
    kind = "Retrieval" if top_ranked is None else "Reranking"

    class Task(AbsTaskRetrieval):
        metadata = globals()["metadata"](kind, "ndcg_at_10", **changes)

        def load_data(self, num_proc=None, **kwargs):
            split = {
                "corpus": Dataset.from_list(corpus),
                "queries": Dataset.from_list(queries),
                "relevant_docs": {query: dict(grades) for query, grades in qrels.items()},
                "top_ranked": top_ranked,
            }
            self.dataset, self.data_loaded = {"default": {"test": split}}, True

    return Task()


def similarity_task(pairs):
    """A task of sentence pairs and their similarity."""

    class Task(AbsTaskSTS):
        metadata = globals()["metadata"]("STS", "cosine_spearman")
        min_score, max_score = 0, 5

        def load_data(self, num_proc=None, **kwargs):
            first, second, scores = zip(*pairs, strict=True)
            rows = {"sentence1": list(first), "sentence2": list(second), "score": list(scores)}
            self.dataset, self.data_loaded = {"default": {"test": Dataset.from_dict(rows)}}, True

    return Task()


def reported(model, task, measure="ndcg_at_10", cache=None):
    """The figure that mteb reports; with `measure=None` all of them, by mteb's names."""
    options = {"encode_kwargs": {"batch_size": 3, **QUIET}, **QUIET}
    result = mteb.evaluate(model, tasks=[task], cache=cache, co2_tracker=False, **options)
    assert not result.exceptions
    scores = result.task_results[0].scores["test"][0]
    return scores if measure is None else scores[measure]


def ndcg(run, qrels=QRELS):
    """The figure that we report, rounded as mteb does."""
    return round(evaluate(run, qrels, ["nDCG@10"]).measures["nDCG@10"], 5)


def texts_of(rows):
    """Titles and instructions joined by hand."""
    return {
        row["id"]: " ".join(filter(None, [row.get("title"), row["text"], row.get("instruction")]))
        for row in rows
    }


def our_run(model, workflow, folder, *, k=1000, candidates=None, corpus=CORPUS, queries=QUERIES):
    """What our own search finds, without mteb."""
    documents = [Document(id_, text) for id_, text in texts_of(corpus).items()]
    build_index(documents, model, folder, model.index_settings())
    with Index(folder) as index:
        return Searcher(index, model).run(texts_of(queries), k, workflow=workflow, candidates=candidates)


def searched(model, corpus=CORPUS, queries=QUERIES, *, top_k=1000, top_ranked=None, **options):
    """One round of the search protocol, as mteb makes it."""
    task = retrieval_task(corpus, queries, QRELS, top_ranked=top_ranked)
    task.load_data()
    split = task.dataset["default"]["test"]
    common = {"task_metadata": task.metadata, "hf_split": "test", "hf_subset": "default", "num_proc": None}
    common["encode_kwargs"] = {**QUIET, **options}
    model.index(split["corpus"], **common)
    return model.search(split["queries"], top_k=top_k, top_ranked=top_ranked, **common)


def encoded(model, texts, **options):
    """One call of the encoder protocol, as mteb makes it."""
    batches = torch.utils.data.DataLoader([{"text": text} for text in texts], batch_size=3)
    about = {"task_metadata": metadata("STS", "spearman"), "hf_split": "test", "hf_subset": "default"}
    return model.encode(batches, **about, **QUIET, **options)
