"""The search protocol: what mteb reports is what our own evaluation reports."""

import os

import mteb
import pytest
from tests.integrations.tasks import (
    CORPUS,
    LISTED,
    QRELS,
    QUERIES,
    ndcg,
    our_run,
    reported,
    retrieval_task,
    searched,
    texts_of,
)

from counterpoint.data import open_collection
from counterpoint.errors import DataError, NotFittedError
from counterpoint.index import Index
from counterpoint.integrations import MtebSearch
from counterpoint.measure import evaluate
from counterpoint.search import WORKFLOWS, Run


def test_the_protocol_holds(model):
    search = MtebSearch(model)
    assert isinstance(search, mteb.SearchProtocol) and not isinstance(search, mteb.EncoderProtocol)


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_search_is_measured_as_by_our_own_evaluation(model, workflow, tmp_path):
    task = retrieval_task(CORPUS, QUERIES, QRELS)
    names = {  # ours, mteb's
        "nDCG@10": "ndcg_at_10",
        "AP@5": "map_at_5",
        "R@5": "recall_at_5",
        "P@3": "precision_at_3",
        "RR@10": "mrr_at_10",
    }
    ours = evaluate(our_run(model, workflow, tmp_path / "index"), QRELS, list(names)).measures
    assert 0.1 < ours["nDCG@10"] < 0.9  # otherwise there is nothing to compare
    found = reported(MtebSearch(model, workflow), task, measure=None)
    assert {name: found[theirs] for name, theirs in names.items()} == pytest.approx(dict(ours), abs=5.1e-6)


def test_all_of_top_k_comes_back_as_plain_numbers(model, tmp_path):
    search = MtebSearch(model)
    found = searched(search, top_k=7)
    run = our_run(model, "hybrid", tmp_path / "index", k=7)
    assert found == {query: run.scores(query) for query in run}
    assert all(
        len(scores) == 7 and list(scores) == sorted(scores, key=scores.get)[::-1] for scores in found.values()
    )
    assert {type(score) for scores in found.values() for score in scores.values()} == {float}
    search.close()


def test_titles_and_instructions_are_joined_once_as_mteb_does(model, tmp_path):
    queries = [{**row, "instruction": f"what is {row['id']} in the mat"} for row in QUERIES]
    search = MtebSearch(model, folder=tmp_path / "kept")
    found = searched(search, queries=queries)
    search.close()
    with Index(tmp_path / "kept" / "Tiny-default-test") as index:
        kept = {index.name_of(at): index.document(at).full_text for at in range(len(index))}
    assert kept == texts_of(CORPUS) and kept["d3"] == "house the cat blue sat"
    run = our_run(model, "hybrid", tmp_path / "index", queries=queries)
    assert found == {query: run.scores(query) for query in run}
    assert found != searched(MtebSearch(model))


def test_a_conversation_is_one_query(model, tmp_path):
    turns = [{"role": "user", "content": "where"}, {"role": "cat", "content": "the mat"}]
    found = searched(MtebSearch(model), queries=[{"id": "q0", "text": turns}])
    joined = [{"id": "q0", "text": "user: where; cat: the mat"}]
    assert found == {"q0": our_run(model, "hybrid", tmp_path / "index", queries=joined).scores("q0")}


def test_reranking_scores_the_listed_documents_only(model, tmp_path):
    listed = Run({query: dict.fromkeys(ids, 0.0) for query, ids in LISTED.items()})
    run = our_run(model, "hybrid", tmp_path / "index", candidates=listed)
    found = searched(MtebSearch(model), top_ranked=LISTED)
    assert found == {query: run.scores(query) for query in run}
    assert {query: sorted(scores) for query, scores in found.items()} == {
        query: sorted(ids) for query, ids in LISTED.items()
    }
    task = retrieval_task(CORPUS, QUERIES, QRELS, top_ranked=LISTED)
    assert reported(MtebSearch(model), task) == ndcg(run)
    assert searched(MtebSearch(model), top_ranked={"q1": ["d5"]}).keys() == QRELS.keys()
    with pytest.raises(DataError, match="candidate 'd99' is not in the index"):
        searched(MtebSearch(model), top_ranked={"q1": ["d99"]})


def test_a_query_that_finds_nothing_counts_as_zero(model, tmp_path):
    queries = [*QUERIES[:3], {"id": "q3", "text": "document"}]
    run = our_run(model, "lexical", tmp_path / "index", queries=queries)
    assert run["q3"] == [] and run["q2"] != []
    task = retrieval_task(CORPUS, queries, QRELS)
    assert reported(MtebSearch(model, "lexical"), task) == ndcg(run)


def test_temporary_indexes_are_removed(model, scratch):
    search = MtebSearch(model)
    for _ in range(2):
        searched(search)
        assert len(os.listdir(scratch)) == 1
    search.close()
    assert os.listdir(scratch) == []
    search = MtebSearch(model)
    searched(search)
    with pytest.raises(DataError, match="duplicate document id"):
        searched(search, corpus=[CORPUS[0], CORPUS[0]])
    assert os.listdir(scratch) == []
    searched(search)
    del search
    assert os.listdir(scratch) == []


def test_an_index_that_was_asked_for_stays_and_is_replaced(model, tmp_path):
    search = MtebSearch(model, "dense", folder=tmp_path / "kept")
    searched(search)
    searched(search, corpus=CORPUS[:5])
    search.close()
    with Index(tmp_path / "kept" / "Tiny-default-test") as index:
        assert len(index) == 5
    with pytest.raises(NotFittedError, match=r"search\(\) was called before index\(\)"):
        search.search(None, task_metadata=None, hf_split="", hf_subset="", top_k=1, encode_kwargs={})


@pytest.mark.long
@pytest.mark.shared
@pytest.mark.minilm
def test_the_default_model_on_a_real_collection(shared, tmp_path):
    collection = open_collection(shared / "data" / "med")
    qrels = dict(list(collection.qrels(collection.splits[0]).items())[:10])
    judged = {document for grades in qrels.values() for document in grades}
    documents = [document for document in collection.documents() if document.id in judged][:60]
    corpus = [{"id": d.id, "title": d.title, "text": d.text} for d in documents]
    texts = collection.queries(collection.splits[0])
    queries = [{"id": query, "text": texts[query]} for query in qrels]
    task = retrieval_task(corpus, queries, qrels)
    search = MtebSearch("minilm")
    assert search.mteb_model_meta.name == "counterpoint/minilm"
    run = our_run(search.model, "hybrid", tmp_path / "index", corpus=corpus, queries=queries)
    assert reported(search, task) == ndcg(run, qrels) > 0.3
