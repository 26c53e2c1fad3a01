"""An index of shards: a search gives the scores and the ranking of the same index undivided, bit for bit."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from tests.fakes import HashModel
from tests.index.test_changes import LAYOUTS, QUERIES, WORDS

import counterpoint as cp
from counterpoint.data import open_collection
from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.index import Index, IndexSettings, Manifest, build_index
from counterpoint.index import centroids as centroids_module
from counterpoint.index.changing import changing
from counterpoint.index.compacting import compact
from counterpoint.index.ours import check_ours
from counterpoint.index.repairing import repair
from counterpoint.index.segment import ORDER
from counterpoint.index.sharding import MOST_SHARDS, divide, shard_of
from counterpoint.search import Searcher
from counterpoint.types import Document


def documents(count=120):
    """Many of them with equal texts, so that candidates are chosen between equal scores."""
    rng = np.random.default_rng(7)
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(0, 6))) for _ in range(count)]
    cut = [Document(f"p#{i}", text, parent="p", start=i) for i, text in enumerate(texts[:5])]
    return [Document(f"d{i}", text, metadata={"year": 2000 + i % 4}) for i, text in enumerate(texts)] + cut


def answers(folder, layout, where=None):
    with Index(folder) as index:
        return answers_of(index, layout, where)


def answers_of(index, layout, where=None):
    """What searches with some settings and every workflow of a layout find, with explanations."""
    found = []
    for settings in layout.searches[:: max(1, len(layout.searches) // 3)]:
        searcher = Searcher(index, layout.model, replace(settings, exhaustive=True))
        searcher = searcher if where is None else searcher.where(where)
        for workflow in layout.workflows:
            found += [searcher.search(q, 9, workflow=workflow, explain=True) for q in QUERIES[:3]]
            found.append(searcher.run(dict(zip(QUERIES, QUERIES, strict=True)), 50, workflow=workflow))
    return found


@pytest.mark.parametrize("name", [name for name in LAYOUTS if not name.startswith("shards")])
def test_shards_answer_as_the_whole(name, tmp_path, monkeypatch):
    if name == "graph":
        pytest.importorskip("faiss")
    monkeypatch.setattr(centroids_module, "LEAST_ROWS", 1)  # so that there are centroids
    monkeypatch.setattr(centroids_module, "ROWS", 8)
    layout = LAYOUTS[name]
    settings = replace(layout.settings, metadata={"year": "int"})
    build_index(documents(), layout.model, tmp_path / "one", settings)
    build_index(documents(), layout.model, tmp_path / "many", replace(settings, shards=4))
    with Index(tmp_path / "one") as one, Index(tmp_path / "many") as many:
        assert [each.entry.shard for each in many.segments] == [0, 1, 2, 3]
        for position in one.positions.tolist():
            assert one.document(position) == many.document(int(many.positions[position]))
    whole = answers(tmp_path / "one", layout)
    assert answers(tmp_path / "many", layout) == whole
    assert answers(tmp_path / "many", layout, "year > 2001") == answers(
        tmp_path / "one", layout, "year > 2001"
    )
    with Index(tmp_path / "one") as one:
        assert divide(one, 3) == 1 and divide(one, 3) == 0
    assert answers(tmp_path / "one", layout) == whole
    with Index(tmp_path / "many") as many:
        assert divide(many, 1) == 1
    assert answers(tmp_path / "many", layout) == whole
    assert Manifest.read(tmp_path / "many").faults(tmp_path / "many") == []


def test_the_first_of_equal_scores_is_the_one_added_first(tmp_path):
    layout = LAYOUTS["BM25 alone"]
    same = [Document(f"d{i:03d}", "fox") for i in np.random.default_rng(1).permutation(100)]
    found = []
    for shards in (1, 5):
        folder = tmp_path / str(shards)
        build_index(same, None, folder, replace(layout.settings, shards=shards))
        with Index(folder) as index:
            (search,) = layout.searches
            searcher = Searcher(index, None, replace(search, candidates=7))
            found.append([hit.id for hit in searcher.search("fox", 7, workflow="lexical")])
    assert found[0] == found[1] == sorted((document.id for document in same[:7]), reverse=True)


def test_a_document_is_in_the_shard_of_its_id_with_all_its_passages(tmp_path):
    build_index(documents(), HashModel(), tmp_path / "i", IndexSettings(shards=3))
    with Index(tmp_path / "i") as index:
        with changing(index, HashModel()) as change:
            change.add([Document("q#0", "fox", parent="q"), Document("q#1", "dog", parent="q")])
            change.add([Document(f"n{i}", "river") for i in range(9)])
        now = index.refreshed()
        for segment in now.segments:
            names = segment.database.names(range(segment.documents))
            assert {shard_of(now.parents.get(name, name), 3) for name in names} == {segment.entry.shard}
            assert segment.files.folder.is_relative_to(
                tmp_path / "i" / "shards" / f"0000{segment.entry.shard}"
            )
        assert [now.name_of(int(p)) for p in now.positions[-9:]] == [f"n{i}" for i in range(9)]
        compact(now, everything=True)
        assert [each.entry.shard for each in now.refreshed().segments] == [0, 1, 2]


def test_which_shard_is_the_same_in_every_version():
    assert [shard_of(name, 8) for name in ("a", "doc-17", "ä", "\ud800")] == [7, 3, 4, 0]


@pytest.mark.parametrize("shards", [0, -1, MOST_SHARDS + 1])
def test_a_number_of_shards_out_of_bounds_is_refused_before_anything_is_written(tmp_path, shards):
    with pytest.raises(ConfigError, match=f"shards must be from 1 to {MOST_SHARDS:,}"):
        build_index(documents(), None, tmp_path / "i", IndexSettings(shards=shards))
    assert not (tmp_path / "i").exists()


def test_a_shard_without_documents_is_no_fault(tmp_path):
    build_index(documents()[:2], HashModel(), tmp_path / "i", IndexSettings(shards=50))
    with Index(tmp_path / "i") as index:
        assert len(index) == 2 and len(index.segments) <= 2
        with changing(index, HashModel()) as change:
            change.add([Document(f"n{i}", "fox dog") for i in range(200)])
        assert len({each.entry.shard for each in index.refreshed().segments}) > 40


@pytest.mark.parametrize("name", [name for name in LAYOUTS if not name.startswith("shards")])
def test_an_index_that_is_empty_is_divided_searched_and_filled_again(name, tmp_path):
    """It keeps a segment without documents."""
    layout, folder = LAYOUTS[name], tmp_path / "i"
    build_index(documents(4), layout.model, folder, layout.settings)
    with Index(folder) as index, changing(index) as change:
        change.delete([document.parent or document.id for document in documents(4)[:5]])
    for shards in (3, 2, 1):
        with Index(folder) as index:
            divide(index, shards)
            now = index.refreshed()
            assert (len(now), len(now.segments), now.manifest.shards) == (0, 1, shards)
            assert now.manifest.faults(folder) == [] and not any(
                getattr(answer, "hits", ()) for answer in answers_of(now, layout)
            )
    with Index(folder) as index, changing(index, layout.model) as change:
        change.add(documents(4))
    with Index(folder) as index:
        assert len(index) == len(documents(4))


def test_the_order_that_the_disk_damaged_is_restored_from_its_copy(tmp_path):
    build_index(documents(), HashModel(), tmp_path / "i", IndexSettings(shards=2))
    path = next((tmp_path / "i").glob(f"shards/00001/segments/*/{ORDER[0]}"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"\x07")
    with pytest.raises(ArtifactError):
        Index(tmp_path / "i")
    assert repair(tmp_path / "i").left == {}
    with Index(tmp_path / "i") as index:
        assert len(index) == len(documents())
        assert index.manifest.faults(tmp_path / "i") == []


def test_a_build_that_replaces_shards_leaves_nothing_of_them(tmp_path):
    folder = tmp_path / "i"
    build_index(documents(), None, folder, IndexSettings(shards=3))
    build_index(documents()[:9], None, folder, IndexSettings(), overwrite=True)
    assert not [path for path in folder.glob("shards/**/*") if path.is_file()]
    build_index(documents()[:9], None, folder, IndexSettings(shards=2), overwrite=True)
    (folder / "shards" / "00001" / "mine.txt").write_text("not an index's")
    with pytest.raises(ArtifactError, match="shards/00001/mine.txt"):
        check_ours(folder)


def test_only_an_index_of_shards_needs_the_newest_format(tmp_path):
    for shards, version in ((1, 5), (2, 6)):
        build_index(documents()[:9], None, tmp_path / str(shards), IndexSettings(shards=shards))
        written = json.loads((tmp_path / str(shards) / "manifest.json").read_text())
        assert written["version"] == version
        assert all(("shard" in segment) == (shards > 1) for segment in written["segments"])


def test_an_export_of_shards_gives_the_same_index(tmp_path):
    rows = [{"id": f"d{i}", "text": f"{WORDS[i % 12]} {WORDS[i % 5]}"} for i in range(40)]
    made = cp.index(rows, tmp_path / "i", model=None, shards=3)
    made.export(tmp_path / "out")
    again = cp.index(tmp_path / "out", tmp_path / "again", model=None)
    assert again.info()["shards"] == 3
    assert [h.id for h in again.search("fox", workflow="lexical")] == [
        h.id for h in made.search("fox", workflow="lexical")
    ]
    lines = [json.loads(line) for line in (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()]
    assert [line["_id"] for line in lines] == [row["id"] for row in rows]


@pytest.mark.long
@pytest.mark.shared
@pytest.mark.minilm
@pytest.mark.filterwarnings("ignore:.*word-pieces that minilm reads")
def test_a_real_collection_in_shards_ranks_as_the_whole(shared, tmp_path):
    collection = open_collection(shared / "data" / "cranfield")
    one = cp.index(collection, tmp_path / "one", processes=2)
    shutil.copytree(tmp_path / "one", tmp_path / "many")
    many = cp.open(tmp_path / "many")
    many.compact(shards=8)
    queries = collection.queries("test")
    for workflow in ("hybrid", "words", "dense", "lexical"):
        assert many.run(queries, 100, workflow=workflow) == one.run(queries, 100, workflow=workflow)
