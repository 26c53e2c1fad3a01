"""Evaluation of a cross-encoder: BM25's best documents, ranked anew; against loops over pairs."""

import pytest
from tests.learn.small import WORDS, development_set, judge

from counterpoint.errors import DataError
from counterpoint.learn import DevelopmentSet, first_stage, rerank
from counterpoint.search import Run


def test_the_first_stage_finds_what_shares_words():
    found = first_stage(development_set(), 3)
    assert list(found) == [f"q{at}" for at in range(0, 24, 3)]
    for query in found:
        word = WORDS[int(query[1:]) % 12]
        documents = [development_set().documents[document] for document, _ in found[query]]
        assert len(documents) == 3 and any(word in text for text in documents)


def test_reranking_is_the_order_of_scores_of_single_pairs(tiny_bert_folder):
    made = judge(tiny_bert_folder).train()
    development = development_set()
    first = first_stage(development, 4)
    ranks = []
    for query, grades in development.qrels.items():
        ranked = sorted(
            (
                made.scores([development.queries[query]], [development.documents[document]]).item(),
                document,
            )
            for document, _ in first[query]
        )[::-1]
        relevant = [rank for rank, (_, document) in enumerate(ranked, 1) if grades.get(document)]
        ranks.append(1 / relevant[0] if relevant else 0.0)
    seen = []
    measured = rerank(made, development, first, ["RR@10"], on_progress=seen.append)
    assert measured == {"RR@10": pytest.approx(sum(ranks) / len(ranks))}
    assert 0 < measured["RR@10"] < 1
    assert seen[-1] == sum(len(first[query]) for query in first) and seen == sorted(seen)
    assert made.training, "the model is as it was"


def test_a_query_that_the_first_stage_has_nothing_for_counts_as_missed(tiny_bert_folder):
    development = DevelopmentSet({"q": "cat", "r": "dog"}, {"d": "a cat"}, {"q": {"d": 1}, "r": {"d": 1}})
    measured = rerank(judge(tiny_bert_folder), development, Run({"q": {"d": 1.0}, "r": {}}), ["RR@10"])
    assert measured == {"RR@10": 0.5}
    with pytest.raises(DataError, match="no text is known for document 'x'"):
        rerank(judge(tiny_bert_folder), development, Run({"q": {"x": 1.0}}), ["RR@10"])
