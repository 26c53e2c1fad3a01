"""A random life of an index compared with brute force, and with an index that is built anew of what is left.

Random adds, deletes, replacements, conditions, compactions, changes that fail, writers that are killed
before and after their commit, snapshots that stay open, and searches by every workflow. Brute force
(`brute`) knows nothing of indexes. Where nothing was fitted, the index that was built anew answers the same
to the last bit.
"""

import random
import shutil
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
from tests.fakes import HashModel, StaticModel
from tests.index.brute import Brute, Part, Refused, Unclear, ranked
from tests.index.test_damage import TokenModel

from counterpoint.errors import ConfigError, DataError
from counterpoint.index import Index, IndexSettings, LexicalSettings, Manifest, build_index, merge_rule
from counterpoint.index import centroids as centroids_module
from counterpoint.index import committing as committing_module
from counterpoint.index.changing import changing
from counterpoint.index.compacting import compact
from counterpoint.index.sharding import divide, shard_of
from counterpoint.search import Run, Searcher, SearchSettings
from counterpoint.types import Document

WORDS = "fox dog cat bridge river turtle green brown lazy quick sleep box".split()
QUERIES = (
    "fox",
    "quick brown fox",
    "turtle river fox fox",
    "unseen",
    "cat unseen lazy",
    "box bridge green dog",
)
IDS = [f"d{i}" for i in range(30)]
CUT = [f"p{i}" for i in range(4)]
DEPTHS = (1, 3, 10, 60)
CONDITIONS = {
    "year >= 2003": lambda m: "year" in m and m["year"] >= 2003,
    "lang in ('en', 'fr')": lambda m: m.get("lang") in ("en", "fr"),
    "not year = 2001 and lang = 'de'": lambda m: m.get("year", 2001) != 2001 and m.get("lang") == "de",
    "year is null or lang != 'en'": lambda m: "year" not in m or m.get("lang", "en") != "en",
}
NAMED = {"year >= 2003": ["year"], "lang in ('en', 'fr')": ["lang"]}  # the others name both


class Killed(BaseException):
    """What ends a writer here, as a signal would: nothing is tidied up."""


@dataclass(frozen=True)
class Layout:
    """An index of one kind, what brute force must know of it, and how it is searched."""

    model: object
    parts: dict
    settings: IndexSettings = IndexSettings()
    searches: tuple = ()
    workflows: tuple = ("hybrid", "lexical", "dense", "words", "dense-words", "words-dense")
    typed: dict = field(default_factory=dict)

    @property
    def fitted(self):
        return any(part.codec == "kept" for part in self.parts.values())


BM25 = LexicalSettings(analyzer="none", identifiers=False)
TWO = {"lexical": 0.3, "mean": 0.2, "words": 0.5}
PLAIN = SearchSettings(weights=TWO)
FEW = replace(PLAIN, candidates=3)
IDF = replace(PLAIN, idf={"words": 0.5}, floor=("words",))
ADAPTED = replace(PLAIN, adapt={"lexical": 0.6, "words": 3.0})
FED = replace(PLAIN, feedback=0.5, feedback_documents=3)
RANKS, MIN_MAX, Z_SCORE = (PLAIN.with_fusion(name) for name in ("rrf", "min-max", "z-score"))
REFINED = replace(ADAPTED, candidates=5, refined=2)
EVERY = (PLAIN, FEW, REFINED, IDF, ADAPTED, FED, RANKS, MIN_MAX, Z_SCORE, replace(FED, adapt=ADAPTED.adapt))
FITTED = (PLAIN, FEW, REFINED, IDF, ADAPTED)  # the others tell more apart than a query in 8 bits does
HIL = SearchSettings(weights={"lexical": 0.3, "l": 0.3, "h": 0.4})


def hashed(codec, words=None, **given):
    pooled = "int8" if codec == "int4" or codec.endswith("bit") else codec
    return {"mean": Part(pooled, pooled=True), "words": Part(words or codec, **given)}


def exactly(searches):
    return tuple(replace(each, exact=("words",), floor=()) for each in searches)


LAYOUTS = {
    "int8": Layout(HashModel(), hashed("int8"), IndexSettings(), EVERY),
    "float32": Layout(HashModel(), hashed("float32"), IndexSettings(codec="float32"), EVERY),
    "exact": Layout(
        HashModel(), hashed("int8", exact=True), IndexSettings(search={"exact": ["words"]}), exactly(EVERY),
        typed={"year": "int", "lang": "str"},
    ),
    "exact float16": Layout(
        HashModel(), hashed("float16", exact=True),
        IndexSettings(codec="float16", search={"exact": ["words"]}), exactly(EVERY),
    ),
    "graph": Layout(
        HashModel(), hashed("int8"), IndexSettings(ann="hnsw"),
        tuple(replace(each, exhaustive=True) for each in EVERY), typed={"year": "int"},
    ),
    "static": Layout(
        StaticModel(), {"l": Part("static"), "h": Part("int8")}, IndexSettings(),
        (HIL, replace(HIL, candidates=3), replace(HIL, idf={"l": 1.0}, adapt={"lexical": 0.6, "l": 4.0}),
         HIL.with_fusion("rrf"), replace(HIL, exact=("l",))),
        ("hybrid", "lexical", "words"),
    ),
    "1-bit": Layout(HashModel(), hashed("1-bit", "kept"), IndexSettings(codec="1-bit"), FITTED),
    "lists": Layout(
        TokenModel(), hashed("2-bit", "kept", listed=True), IndexSettings(codec="2-bit"),
        tuple(replace(each, idf={}, exhaustive=True) for each in (PLAIN, FEW, IDF, ADAPTED)),
    ),
    "shards": Layout(HashModel(), hashed("int8"), IndexSettings(shards=3), EVERY),
    "shards, exact": Layout(
        HashModel(), hashed("float16", exact=True),
        IndexSettings(codec="float16", search={"exact": ["words"]}, shards=4), exactly(EVERY),
        typed={"year": "int"},
    ),
    "shards, 1-bit": Layout(
        HashModel(), hashed("1-bit", "kept"), IndexSettings(codec="1-bit", shards=2), FITTED
    ),
    "BM25 alone": Layout(
        None, {}, IndexSettings(), (SearchSettings(weights={"lexical": 1.0}),), ("hybrid", "lexical"),
        typed={"lang": "str"},
    ),
    "int4": Layout(HashModel(), hashed("int4"), IndexSettings(codec="int4"), EVERY),
}  # fmt: skip


class Life:
    """An index, what it must be, and snapshots of both.

    Args:
        root: an empty folder.
        layout: of the index.
        seed: decides everything that happens.
    """

    def __init__(self, root, layout, seed):
        self.rng, self.root, self.folder, self.layout = random.Random(seed), root, root / "i", layout
        self.settings = replace(layout.settings, lexical=BM25, metadata=layout.typed)
        self.truth, self.counts = Brute(layout.model, layout.parts), Counter()
        first = [self.document(name) for name in IDS[:12]]
        build_index(first, layout.model, self.folder, self.settings)
        self.truth.add(first)
        self.index, self.snapshots = Index(self.folder), []
        self.keep_rows()

    def step(self):
        names, weights = zip(*STEPS.items(), strict=True)
        (name,) = self.rng.choices(names, weights)
        self.counts[name] += 1
        getattr(self, name)()

    # -- changes ---------------------------------------------------------------------------------------

    def document(self, name, **given):
        words = self.rng.choices(WORDS, k=self.rng.choice((0, 1, 3, 5, 8)))
        metadata = {"year": self.rng.randrange(2000, 2006), "lang": self.rng.choice(("en", "de", "fr"))}
        kept = {key: value for key, value in metadata.items() if self.rng.random() < 0.8}
        title = self.rng.choice(("", "", self.rng.choice(WORDS)))
        return Document(name, " ".join(words), title, metadata=kept, **given)

    def documents(self, name):
        """A document, or the passages of one that is long."""
        if name not in CUT:
            return [self.document(name)]
        return [self.document(f"{name}#{i}", parent=name, start=9 * i) for i in range(self.rng.randint(1, 3))]

    def drawn(self, least=1, among=(*IDS, *CUT)):
        return self.rng.sample(among, min(len(among), self.rng.randint(least, 4)))

    def added(self, change, truth, replacing):
        """Documents of which some are there; or only new ones."""
        names = self.drawn(1)
        if not replacing:
            names = [name for name in names if name not in truth.wholes()] or [
                f"n{sum(self.counts.values())}"
            ]
        batch = [each for name in names for each in self.documents(name)]
        truth.add(batch, replace=replacing)
        assert change.add(iter(batch), replace=replacing) == len(batch)

    def adds(self, change, truth):
        self.added(change, truth, False)

    def replaces(self, change, truth):
        self.added(change, truth, True)

    def deletes(self, change, truth):
        missing_ok = self.rng.random() < 0.3
        names = self.drawn(0) if missing_ok else self.drawn(0, sorted(truth.wholes()))
        assert change.delete(names, missing_ok=missing_ok) == truth.delete(names, missing_ok)

    def is_refused(self, change, truth):
        """One of many wrong things to ask for."""
        there = [name for name in truth.wholes() if name in IDS]
        passages = [row.id for row in truth.rows.values() if row.parent]
        wrong = [
            lambda one: one.delete(["nobody"]),
            lambda one: one.add([self.document("twice"), self.document("twice")]),
            *([lambda one: one.add([self.document(there[0])])] if there else []),
            *([lambda one: one.delete(passages[:1])] if passages else []),
            *(
                [lambda one: one.add([self.document(passages[0], parent="z")], replace=True)]
                if passages
                else []
            ),
        ]
        ask = self.rng.choice(wrong)
        with pytest.raises(Refused):
            ask(truth.copy())
        with pytest.raises(DataError):
            ask(change)
        raise DataError("as it came out of the change")

    def deletes_where(self, change, truth):
        condition = self.condition(truth)
        assert change.delete_where(condition) == truth.delete_where(CONDITIONS[condition])

    def condition(self, truth):
        known = {name for row in truth.rows.values() for name in row.metadata} | self.layout.typed.keys()
        fits = [each for each in CONDITIONS if known.issuperset(NAMED.get(each, ("year", "lang")))]
        return self.rng.choice(fits) if fits else None

    def change(self):
        """Some of it in one commit."""
        self.committed(self.changed())

    def changed(self, ending=None):
        """Do some of it; what the index must be then."""
        truth = self.truth.copy()
        doing = self.rng.choices(
            (self.adds, self.replaces, self.deletes), (3, 3, 3), k=self.rng.randint(1, 3)
        )
        if self.rng.random() < 0.15 and self.condition(truth):
            doing[0] = self.deletes_where
        with changing(self.index, self.layout.model) as change:
            for do in doing:
                do(change, truth)
                self.counts[do.__name__] += 1
            if ending is not None:
                ending(change, truth)
        return truth

    def failed(self):
        """A change that is refused, or that its own program gives up."""
        with pytest.raises((DataError, ZeroDivisionError)):
            self.changed(self.rng.choice((self.is_refused, lambda change, truth: 1 // 0)))
        self.unchanged()

    def unchanged(self):
        assert self.index.refreshed() is self.index
        assert self.index.manifest.faults(self.folder) == []

    def killed(self):
        """A writer that ends without having tidied up: in its block, before its commit, or after it."""
        kept = []

        def block(change, truth):
            kept.append(truth)
            if where == "block":
                raise Killed

        where = self.rng.choice(("block", "before", "after"))
        if self.until_killed(where, lambda: self.changed(block)) and where == "after":
            self.committed(kept[0])
        else:
            self.unchanged()

    def until_killed(self, where, act):
        """Let a writer begin that is killed; whether it was, and did not end before."""
        write, killed = Manifest.write, True

        def stop(manifest, folder):
            if where == "after":
                write(manifest, folder)
            raise Killed

        with ExitStack() as stack:
            stack.enter_context(patch.object(committing_module, "remove_unfinished", lambda *_, **__: None))
            stack.enter_context(patch.object(Manifest, "write", stop))
            stack.enter_context(suppress(Killed))
            act()
            killed = False
        self.counts[f"killed: {where}" if killed else "killed: nothing to do"] += 1
        return killed

    def compact(self):
        """By the rule, or all; perhaps killed on the way, before or after its first commit."""
        everything = self.rng.random() < 0.5
        act = partial(compact, self.index, everything=everything)
        if self.rng.random() < 0.3:
            self.until_killed(self.rng.choice(("before", "after")), act)
        elif act():
            self.counts["compacted"] += 1
            now = self.index.refreshed()
            if everything and self.truth.rows and not self.layout.fitted:
                assert len(now.segments) <= now.manifest.shards and now.live is None
        self.committed(self.truth.copy())  # that of a snapshot keeps the rows that it had

    def divide(self):
        """Into another number of shards, perhaps killed before or after the commit; or into none."""
        if self.layout.settings.shards == 1:
            return
        act = partial(divide, self.index, self.rng.randint(1, 5))
        if self.rng.random() < 0.3:
            self.until_killed(self.rng.choice(("before", "after")), act)
        else:
            self.counts["divided"] += act()
        self.committed(self.truth.copy())
        assert all(map(self.is_at_home, self.index.manifest.segments))

    def is_at_home(self, entry):
        shards = self.index.manifest.shards
        segment = next(each for each in self.index.segments if each.entry is entry)
        names = [self.index.parents.get(name, name) for name in segment.database.names(segment.rows.tolist())]
        return {shard_of(name, shards) for name in names} <= {entry.shard or 0}

    def committed(self, truth):
        """Look at what is there now."""
        if self.rng.random() < 0.4:
            self.snapshots = [*self.snapshots[-2:], (self.index, self.truth)]
        self.truth = truth
        self.index = Index(self.folder) if self.rng.random() < 0.2 else self.index.refreshed()
        self.keep_rows()
        self.look(self.index, truth)
        assert self.index.manifest.faults(self.folder) == []
        if truth.rows:
            self.beside_a_new_one()

    # -- looks -----------------------------------------------------------------------------------------

    def look(self, index, truth):
        """Everything that can be asked without a query."""
        rows = list(truth.rows.values())
        assert [index.document(position) for position in index.positions.tolist()] == rows
        assert len(index) == len(rows) and index.end >= len(rows)
        assert index.names_of(index.positions) == [row.id for row in rows]
        for name in (*self.drawn(4), *self.rng.sample(list(truth.rows), min(3, len(rows)))):
            position = index.position_of(name)
            assert (position is None) == (name not in truth.rows)
            assert position is None or index.name_of(position) == name
        assert index.parents == {row.id: row.parent for row in rows if row.parent}
        info = index.info()
        assert (info["documents"], info["passages"]) == (len(truth.wholes()), len(rows))
        assert info["text_bytes"] == sum(len(row.title) + len(row.text) for row in rows)
        for name, part in self.layout.parts.items():
            if index.layouts[name].ids:
                ids = [truth.encoded(name, row.full_text)[1] for row in rows]
                known, df = np.unique(np.concatenate([[], *map(np.unique, ids)]), return_counts=True)
                assert index.distinct_ids(name) == len(known)
                np.testing.assert_allclose(index.idf(name, known.astype(int)), truth.idf(df), rtol=1e-5)
            if rows and not part.pooled:
                average = np.mean([len(truth.vectors(name, row)[0]) for row in rows])
                assert index.mean_rows(name, index.positions) == pytest.approx(average)

    def keep_rows(self):
        """Rows of few bits never change, and what was added waits in eight, until it is coded."""
        for name, part in self.layout.parts.items():
            if part.codec == "kept":
                first, truth = not self.truth.stored, Brute(self.layout.model, {name: Part("int8")})
                taken = self.index.take(name, self.index.positions)
                stored = {}
                for i, row in enumerate(self.truth.rows.values()):
                    stored[name, row.id] = taken[i]
                    before, whole = self.truth.stored.get((name, row.id)), truth.vectors(name, row)[0]
                    if before is None or not self.truth.was(row):
                        assert first or np.allclose(taken[i], whole, atol=1e-6)
                    # Decoding is a product of floats, so its last bit may depend on the batch.
                    elif not np.allclose(before, taken[i], rtol=0, atol=1e-6):
                        assert np.allclose(before, whole, atol=1e-6), "coded twice"
                        self.counts["coded"] += 1
                self.truth.keep(stored)

    def beside_a_new_one(self):
        folder = self.root / "new"
        whole = replace(self.settings, shards=1)  # shards answer as an index without
        build_index(list(self.truth.rows.values()), self.layout.model, folder, whole)
        with Index(folder) as other:
            settings, query = self.rng.choice(self.layout.searches), self.rng.choice(QUERIES)
            condition = self.condition(self.truth) if self.rng.random() < 0.3 else None
            same = ("lexical", "dense") if self.layout.fitted else self.layout.workflows
            for workflow in same:
                both = [self.searcher(index, settings, condition) for index in (self.index, other)]
                one, two = (each.search(query, 10, workflow=workflow, explain=True) for each in both)
                assert one == two
                one, two = (each.run({"q": query}, 5, workflow=workflow) for each in both)
                assert one == two
                self.counts["the same as anew"] += 1
        shutil.rmtree(folder)

    def refresh(self):
        """An old snapshot sees what there is now."""
        if self.snapshots:
            before, _ = self.rng.choice(self.snapshots)
            self.look(before.refreshed(), self.truth)
        assert self.index.refreshed() is self.index

    def reopen(self):
        self.index = Index(self.folder)
        self.look(self.index, self.truth)

    # -- searches --------------------------------------------------------------------------------------

    def searcher(self, index, settings, condition):
        found = Searcher(index, self.layout.model, settings)
        return found if condition is None else found.where(condition)

    def asked(self):
        """A snapshot, its searcher, and what it is asked."""
        index, truth = self.rng.choice([*self.snapshots, *[(self.index, self.truth)] * 3])
        settings = self.rng.choice(self.layout.searches)
        condition = self.condition(truth) if self.rng.random() < 0.4 else None
        searcher = self.searcher(index, settings, condition)
        asked = self.rng.choice(QUERIES), self.rng.choice(self.layout.workflows), settings
        return truth, searcher, asked, self.rng.choice(DEPTHS), CONDITIONS.get(condition)

    def search(self):
        truth, searcher, (query, workflow, settings), k, holds = self.asked()
        answer = searcher.search(query, k, workflow=workflow, explain=True)
        try:
            expected = truth.search(query, workflow, settings, k, holds)
        except Unclear:
            self.counts["unclear"] += 1
            return
        self.agrees([(hit.id, hit.score) for hit in answer], {n: x.score for n, x in expected.items()}, k)
        for hit in answer:
            assert hit.document == truth.rows[hit.id]
            self.explained(hit, expected[hit.id])

    def run(self):
        self.ranked(False)

    def rerank(self):
        self.ranked(True)

    def ranked(self, given):
        truth, searcher, (query, workflow, settings), k, holds = self.asked()
        names = self.rng.sample(sorted(truth.wholes()), min(len(truth.wholes()), 7)) if given else None
        candidates = Run({"q": dict.fromkeys(names, 1.0)}) if given else None
        order = [name for name, _ in candidates["q"]] if given else None
        found = searcher.run({"q": query}, k, workflow=workflow, candidates=candidates)["q"]
        try:
            expected = truth.run(query, workflow, settings, 1 if given else k, holds, order)
        except Unclear:
            self.counts["unclear"] += 1
            return
        self.agrees(found, expected, k)

    @property
    def tolerance(self):
        return 0.05 if self.layout.fitted else 1e-4

    def agrees(self, found, expected, k):
        """The best, in their order, up to rounding."""
        assert len(found) == min(k, len(expected))
        for name, score in found:
            assert abs(score - expected[name]) <= self.tolerance, (name, score, expected[name])
        assert found == ranked(dict(found), k)
        least = min((score for _, score in found), default=np.inf)
        left = [score for name, score in expected.items() if name not in dict(found)]
        assert all(score <= least + self.tolerance for score in left)

    def explained(self, hit, expected):
        """The parts of a score and the leaves of each."""
        tree = hit.explanation
        assert tree.score == hit.score and hit.parts.keys() == expected.parts.keys()
        assert [child.label for child in tree.children] == list(expected.parts)
        for child in tree.children:
            assert abs(child.score - expected.parts[child.label]) <= self.tolerance
            assert hit.parts[child.label] == pytest.approx(child.score, abs=1e-9)
            leaves = [each for each in child.leaves() if each is not child]
            assert sum(each.score for each in leaves) == pytest.approx(child.score, abs=1e-4)
            told = [each for each in leaves if each.label != "(normalisation)"]
            wanted = expected.leaves[child.label]
            if told or any(score for _, _, score in wanted):
                assert len(told) == len(wanted)
            for leaf, (label, idf, score) in zip(told, wanted, strict=False):
                piece = leaf.label if leaf.query is None else leaf.query.text
                assert label is None or piece.lower() == label
                assert leaf.idf == (None if idf is None else pytest.approx(idf, rel=1e-4))
                assert abs(leaf.score - score) <= self.tolerance


STEPS = {
    "change": 28, "compact": 5, "divide": 2, "failed": 5, "killed": 5, "refresh": 3, "reopen": 3,
    "search": 34, "run": 9, "rerank": 8,
}  # fmt: skip


def live(tmp_path, monkeypatch, name, steps, seed, say):
    if name == "graph":
        pytest.importorskip("faiss")
    monkeypatch.setattr(centroids_module, "LEAST_ROWS", 1)  # so that there are centroids
    monkeypatch.setattr(centroids_module, "ROWS", 8)
    monkeypatch.setattr("counterpoint.index.rows_writer.LEAST", 10)
    monkeypatch.setattr(merge_rule, "RUN", 3)  # so that a compaction finds something to do
    monkeypatch.setattr(merge_rule, "ENOUGH", 8)
    life = Life(tmp_path, LAYOUTS[name], seed)
    for number in range(steps):
        try:
            life.step()
        except Exception as error:
            error.add_note(f"{name}, seed {seed}, step {number}; so far {dict(life.counts)}")
            raise
    counts = life.counts
    searches = sum(counts[each] for each in ("search", "run", "rerank"))
    assert counts["unclear"] <= searches / 3
    say(f"{name}: {steps} steps, {dict(counts)}")


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_changed_index_is_what_brute_force_says(tmp_path, monkeypatch, say, name):
    live(tmp_path, monkeypatch, name, 35, list(LAYOUTS).index(name), say)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 14))
@pytest.mark.parametrize("name", LAYOUTS)
def test_ten_thousand_steps(tmp_path, monkeypatch, say, name, seed):
    live(tmp_path, monkeypatch, name, 300, seed, say)


def test_a_field_that_no_document_has_any_more_is_unknown(tmp_path):
    build_index([Document("a", "x", metadata={"year": 1}), Document("b", "y")], None, tmp_path / "i")
    with Index(tmp_path / "i") as index:
        with changing(index) as change:
            change.delete(["a"])
        with pytest.raises(ConfigError, match="no metadata field 'year'"):
            index.refreshed().matching("year = 1")
        assert index.matching("year = 1").tolist() == [True, False]
