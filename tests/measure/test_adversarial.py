"""Adversarial documents: which words go, what comes, and that nothing else changes."""

import re

import pytest

from counterpoint.data import ReadPolicy, WordNetFolder, collection_of, open_collection
from counterpoint.data.wordnet import Thesaurus
from counterpoint.errors import ConfigError
from counterpoint.index.analysis import Analyzer
from counterpoint.measure import Adversary, Tally, perturb
from counterpoint.types import Document

SENSES = {
    "car": [["car", "cars"], ["car", "auto", "motorcar"]],
    "fox": [["fox", "dodger"], ["fox", "trickster"]],
    "the": [["the", "thee"]],
    "quick": [["quick", "immediate", "prompt"]],
    "it": [["it", "the"]],
}


class Small(Thesaurus):
    def senses(self, lemma, part):
        return SENSES.get(lemma, []) if part == "n" else []


QUERIES = {"q1": "The quick car?", "q2": "a fox's dodgers", "q3": "Whale"}


def changed(document, qrels, seed=0, relevant_from=1):
    tally = Tally()
    adversary = Adversary(QUERIES, qrels, Small(), seed, relevant_from)
    return adversary.change(document, tally), tally


def test_by_hand():
    document = Document("d", "The CARS (old car) of the fox.", "Car quickly", metadata={"x": 1})
    found, tally = changed(document, {"q1": {"d": 1, "e": 1}, "q2": {"e": 1}})
    synonym = found.title.split()[0].lower()
    assert synonym in ("auto", "motorcar")  # not "cars", which the query matches
    assert found.title == f"{synonym.capitalize()} quickly"  # matched by its stem, and no lemma
    assert found.text == f"The {synonym.upper()} (old {synonym}) of the fox."
    assert (found.id, found.metadata) == ("d", {"x": 1})
    assert tally == Tally(documents=1, changed=1, matched=4, replaced=3)


def test_words_of_all_queries_of_a_document_go():
    """The first synonym of fox matches q2 by its stem, so the next sense's stands there; whales have none."""
    document = Document("d", "A car, a Fox, a whale.")
    found, tally = changed(document, {"q1": {"d": 1}, "q2": {"d": 2}, "q3": {"d": 1}})
    assert re.fullmatch(r"A (auto|motorcar), a Trickster, a whale\.", found.text)
    assert tally == Tally(documents=1, changed=1, matched=3, replaced=2)
    found, tally = changed(document, {"q1": {"d": 1}, "q2": {"d": 2}}, relevant_from=2)
    assert found.text == "A car, a Trickster, a whale."
    found, tally = changed(document, {"q3": {"d": 1}})
    assert found == document and tally == Tally(documents=1, changed=0, matched=1, replaced=0)
    found, tally = changed(document, {"q1": {"d": 0, "other": 1}})
    assert found == document and tally == Tally()


def test_the_seed_decides():
    """Both synonyms are drawn over documents, the same ones at every call, others by another seed."""
    qrels = {"q1": {f"d{n}": 1 for n in range(40)}}

    def draws(seed):
        return [changed(Document(f"d{n}", "car"), qrels, seed)[0].text for n in range(40)]

    assert set(draws(0)) == {"auto", "motorcar"}
    assert draws(0) == draws(0) != draws(1)


def test_a_share_of_the_words():
    """About as many stems as asked for; all occurrences of one, and those of a smaller share among them."""
    qrels = {"q1": {f"d{n}": 1 for n in range(400)}}

    def gone(share):
        tally = Tally()
        adversary = Adversary(QUERIES, qrels, Small(), share=share)
        found = {
            n for n in range(400) if adversary.change(Document(f"d{n}", "car, car"), tally).text[0] != "c"
        }
        assert tally.replaced == 2 * len(found) and tally.spared == tally.matched - tally.replaced
        assert (tally.documents, tally.changed) == (400, len(found))
        return found

    few, many = gone(0.2), gone(0.6)
    assert few < many < gone(1.0) == set(range(400))
    assert abs(len(few) - 80) < 32 and abs(len(many) - 240) < 40  # four standard deviations


@pytest.mark.parametrize("share", [0, -0.1, 1.01, float("nan")])
def test_a_share_is_checked(share):
    with pytest.raises(ConfigError, match=r"share: must be above 0 and at most 1"):
        Adversary(QUERIES, {}, Small(), share=share)


def test_a_collection_keeps_all_else():
    documents = [Document("d", "fox"), Document("e", "fox"), Document("f", "")]
    collection = collection_of(
        documents, queries=QUERIES, qrels={"test": {"q2": {"d": 1}}}, query_metadata={"q1": {"kind": "x"}}
    )
    tally = Tally()
    made = perturb(collection, Adversary(QUERIES, {"q2": {"d": 1}}, Small()), tally)
    assert [document.text for document in made.documents()] == ["trickster", "fox", ""]
    assert tally == Tally(1, 1, 1, 1)
    assert made.queries("test") == collection.queries("test") and made.splits == ("test",)
    assert made.qrels("test") == collection.qrels("test") and made.query_metadata() == {"q1": {"kind": "x"}}
    assert (made.name, made.size) == (collection.name, 3)


def test_each_document_counts_once():
    """The judgements of a strict collection are checked against its documents, which are read for that."""
    documents, qrels = [Document("d", "fox"), Document("d", "fox"), Document("e", "fox")], {"q2": {"d": 1}}
    policy = ReadPolicy(unknown_judged="error", duplicates="first")
    collection = collection_of(documents, queries=QUERIES, qrels={"test": qrels}, policy=policy)
    tally = Tally()
    made = perturb(collection, Adversary(QUERIES, qrels, Small()), tally)
    assert made.qrels("test") == qrels
    assert [document.text for document in made.documents()] == ["trickster", "fox"]
    assert tally == Tally(1, 1, 1, 1)


@pytest.mark.shared
def test_a_real_collection(shared):
    """Counted by loops: no new match appears, and the matches that are left are those that were kept."""
    collection = open_collection(shared / "data" / "cranfield")
    queries, qrels = collection.queries("test"), collection.qrels("test")
    tally = Tally()
    adversary = Adversary(queries, qrels, WordNetFolder(shared / "data" / "wordnet"))
    made = {document.id: document for document in perturb(collection, adversary, tally).documents()}
    analyzer, before, after, changed = Analyzer("english"), 0, 0, 0
    for document in collection.documents():
        terms = set()
        for query, grades in qrels.items():
            if grades.get(document.id, 0) >= 1:
                terms.update(analyzer.terms(queries[query]))
        new = made[document.id]
        before += sum(
            term in terms for part in (document.title, document.text) for term in analyzer.terms(part)
        )
        after += sum(term in terms for part in (new.title, new.text) for term in analyzer.terms(part))
        changed += new != document
        if not terms:
            assert new == document
    assert (tally.matched, tally.matched - tally.replaced) == (before, after)
    assert changed == tally.changed and 0.5 < tally.replaced / tally.matched < 1


def test_everything_that_a_source_says_of_itself_is_passed_on(tmp_path):
    (tmp_path / "fox.txt").write_text("fox")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    collection = open_collection(tmp_path)
    made = perturb(collection, Adversary(QUERIES, {}, Small()), Tally())
    assert [document.id for document in made.documents()] == ["fox.txt"]
