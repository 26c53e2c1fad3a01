"""Writers that change an index, for the sweep of crash points: each leaves the old index or the new one.

What an index is, is told by everything that it answers: every document, what a search by every workflow finds
and scores, and what is counted. The new one's answers are those after an undisturbed change.
"""

import shutil
from dataclasses import replace
from unittest.mock import patch

from counterpoint.errors import ArtifactError
from counterpoint.index import Index, IndexSettings, Manifest, build_index, merge_rule
from counterpoint.index.changing import changing
from counterpoint.index.compacting import compact
from counterpoint.index.manifest import COPY, NAME
from counterpoint.index.repairing import repair
from counterpoint.index.sharding import divide
from counterpoint.search import Searcher
from counterpoint.types import Document
from tests.fakes import HashModel

SEARCH = {"weights": {"lexical": 0.2, "mean": 0.2, "words": 0.6}, "exact": ["words"]}
QUERIES = ("text about 3 word1", "new word0")
STORES = {"segments", "lexical", "deletes"}


def documents(first, end, text="text"):
    return [
        Document(f"d{i}", f"{text} about {i} and word{i % 3}", metadata={"year": 2000 + i})
        for i in range(first, end)
    ]


def passages(name, count, text="passage"):
    return [Document(f"{name}#{i}", f"{text} {i} of {name}", parent=name, start=9 * i) for i in range(count)]


class Changing:
    """Everything at once: a condition, ids, passages, a replacement, and a document that comes and goes.

    Doing it again to what it left changes nothing of what is answered.
    """

    settings = IndexSettings(search=SEARCH, metadata={"year": "int"})

    def __init__(self):
        self.model, self.answers = HashModel(), {}

    def build(self, folder):
        build_index([*documents(0, 6), *passages("p", 2)], self.model, folder, self.settings)

    def prepare(self, root):
        self.build(root / "i")
        self.answers["old"] = self.answered(root)
        trial = root.with_name("trial")
        shutil.copytree(root, trial)
        self.act(trial)
        self.answers["new"] = self.answered(trial)
        shutil.rmtree(trial)

    def act(self, root):
        with Index(root / "i") as index, changing(index, self.model) as change:
            change.delete_where("year = 2001")
            change.delete(["d3", "p"], missing_ok=True)
            change.add([*documents(4, 5, "new"), *passages("q", 2)], replace=True)
            change.add(documents(20, 22), replace=True)
            change.delete(["d20"])

    def answered(self, root):
        """Everything that the index says, if all of its files are as the manifest has them."""
        with Index(root / "i") as index:
            assert index.manifest.faults(root / "i") == []
            found = {each.id: each for each in map(index.document, index.positions.tolist())}
            searcher = Searcher(index, self.model)
            ranked = [
                [(hit.id, hit.score, hit.explanation) for hit in searcher.search(q, 20, explain=True)]
                for q in QUERIES
            ]
            info = index.info()
            counted = [
                info["documents"],
                info["passages"],
                info["sets"]["words"]["distinct_ids"],
                index.parents,
            ]
            return found, ranked, counted, dict(index.fields)

    def look(self, root):
        found = self.answered(root)
        kinds = [kind for kind, answers in self.answers.items() if answers == found]
        assert kinds, f"an index that nobody wrote: {sorted(found[0])}"
        return kinds[0]

    def leftovers(self, root):
        folder = root / "i"
        with Index(folder) as index:
            named = {name for entry in index.manifest.segments for name in entry.folders()}
        assert {path.relative_to(folder).as_posix() for path in folder.glob("*/*")} == named
        assert {path.name for path in folder.iterdir()} <= {NAME, COPY, ".lock", *STORES}
        assert {path.name for path in root.iterdir()} == {"i"}


class Adding(Changing):
    """Documents into a segment of few bits; they wait in eight bits at first."""

    settings = replace(Changing.settings, codec="1-bit")

    def act(self, root):
        with Index(root / "i") as index, changing(index, self.model) as change:
            change.add([*documents(10, 13, "new"), *passages("q", 3)], replace=True)


class Deleting(Changing):
    """Documents of two segments, of one of them all, so that it goes."""

    def build(self, folder):
        build_index(documents(0, 6), self.model, folder, self.settings)
        with Index(folder) as index, changing(index, self.model) as change:
            change.add(documents(6, 8, "new"))
            change.delete(["d0"])

    def act(self, root):
        with Index(root / "i") as index, changing(index, None) as change:
            change.delete(["d1", "d2", "d6", "d7"], missing_ok=True)


class Replacing(Changing):
    """Documents and passages by others with the same ids."""

    settings = replace(Changing.settings, codec="float16")

    def act(self, root):
        with Index(root / "i") as index, changing(index, self.model) as change:
            change.add([*documents(1, 4, "new"), *passages("p", 3, "new")], replace=True)


class Compacting(Changing):
    """Two segments with deletes become one, which answers as they did."""

    def build(self, folder):
        build_index(documents(0, 4), self.model, folder, self.settings)
        with Index(folder) as index, changing(index, self.model) as change:
            change.add(documents(6, 8, "new"))
            change.delete(["d1"])

    def act(self, root):
        with Index(root / "i") as index:
            compact(index, everything=True)

    def look(self, root):
        found = self.answered(root)
        with Index(root / "i") as index:
            kind = "new" if len(index.segments) == 1 and index.live is None else "old"
        assert found == self.answers[kind]
        return kind


class Coding(Compacting):
    """Added documents that waited in eight bits become a segment of few."""

    settings = replace(Changing.settings, codec="1-bit")

    def build(self, folder):
        build_index(documents(0, 2), self.model, folder, self.settings)
        with Index(folder) as index, changing(index, self.model) as change:
            change.add(documents(2, 5))

    def act(self, root):
        with patch.object(merge_rule, "ENOUGH", 3):
            super().act(root)

    def look(self, root):
        found = self.answered(root)
        with Index(root / "i") as index:
            kind = "old" if any(segment.entry.codecs for segment in index.segments) else "new"
        assert found == self.answers[kind] and self.answers["old"] != self.answers["new"]
        return kind


class Dividing(Compacting):
    """An index with a change becomes one of shards, which answers as it did."""

    settings = replace(Changing.settings, codec="1-bit")

    def act(self, root):
        with Index(root / "i") as index:
            divide(index, 2)

    def look(self, root):
        found = self.answered(root)
        kind = "old" if Manifest.read(root / "i").shards == 1 else "new"
        assert found == self.answers[kind] and self.answers["old"] == self.answers["new"]
        return kind

    def leftovers(self, root):
        folder = root / "i"
        with Index(folder) as index:
            named = {name for entry in index.manifest.segments for name in entry.folders()}
        found = {path.relative_to(folder).as_posix() for path in folder.glob("shards/*/*/*")}
        assert found | {path.relative_to(folder).as_posix() for path in folder.glob("[dls]*[!s]/*")} == named
        assert {path.name for path in root.iterdir()} == {"i"}


class ChangingShards(Changing):
    """Everything at once, in several shards: all of it or nothing."""

    settings = replace(Changing.settings, shards=3)

    def leftovers(self, root):
        Dividing.leftovers(self, root)


class Repairing(Deleting):
    """Files that derive from others, BM25, deletes, and vectors that are encoded again."""

    hurt = ("documents.checks.npy", "words.postings.npy", "mean.scales.npy", "words.frequencies.npy")

    def prepare(self, root):
        self.build(root / "i")
        self.answers["new"] = self.answered(root)
        manifest = Manifest.read(root / "i")
        files = [f"segments/{manifest.segments[0].name}/{name}" for name in self.hurt]
        files += [max(x for x in manifest.files if x.startswith("lexical/") and not x.endswith("blocks.npy"))]
        files += [name for name in manifest.files if name.endswith("words.counts.npy")]
        for name in files:
            whole = (root / "i" / name).read_bytes()
            (root / "i" / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        self.damaged = manifest, manifest.damaged(root / "i").keys()

    partly = False

    def act(self, root):
        self.finish(root, repair(root / "i", load=lambda: self.model))

    def finish(self, root, done):
        """A file that could not be read counts as damaged, and may be left so."""
        self.partly = bool(done.left)
        if self.partly:
            committed = Manifest.read(root / "i") != self.damaged[0]
            raise ArtifactError(
                "damaged still; the new version is in place" if committed else "damaged still"
            )

    def look(self, root):
        manifest = Manifest.read(root / "i")
        damaged = manifest.damaged(root / "i").keys()
        if (manifest, damaged) == self.damaged:
            return "old"
        if self.partly and damaged:
            assert damaged <= self.damaged[1], damaged
            return "new"
        return super().look(root)


class Salvaging(Repairing):
    """Documents that are damaged are given up, and listed first."""

    hurt = ("words.values.npy",)

    def act(self, root):
        try:
            done = repair(root / "i", drop=root / "lost.jsonl")
        except ArtifactError as error:
            # What is in place then is the list, before the commit.
            if error.path == root / "lost.jsonl" and "in place" in str(error):
                raise ArtifactError("the list cannot be written") from error
            raise
        self.finish(root, done)

    def prepare(self, root):
        super().prepare(root)
        trial = root.with_name("trial")
        shutil.copytree(root, trial)
        self.act(trial)
        self.answers["new"] = self.answered(trial)
        shutil.rmtree(trial)

    def look(self, root):
        found = super().look(root)
        assert found == "old" or self.partly or len((root / "lost.jsonl").read_text().splitlines()) == 5
        return found

    def leftovers(self, root):
        (root / "lost.jsonl").unlink()
        super().leftovers(root)


CHANGERS = {
    "adding": Adding,
    "deleting": Deleting,
    "replacing": Replacing,
    "all changes at once": Changing,
    "compacting": Compacting,
    "compacting into few bits": Coding,
    "dividing": Dividing,
    "all changes at once, in shards": ChangingShards,
    "repairing": Repairing,
    "giving up": Salvaging,
}
