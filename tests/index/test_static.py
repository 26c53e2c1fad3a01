"""Static sets: ids in place of vectors, scores against loops, bytes on the disk."""

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import DOCUMENTS, HashModel, StaticModel
from tests.score import oracle

from counterpoint.data import open_collection
from counterpoint.encode import DualEncoder, Encoder, Linear, Static, TextInput, Transformer
from counterpoint.errors import ArtifactError, ConfigError, ShapeError
from counterpoint.index import Asked, Index, IndexSettings, Manifest, SetLayout, build_index
from counterpoint.index import counted as counted_module
from counterpoint.index import static as static_module
from counterpoint.index import static_ids as static_ids_module
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.kernels import maxsim_scores
from counterpoint.index.piece import Piece
from counterpoint.index.segment import SegmentWriter
from counterpoint.index.static import StaticStore
from counterpoint.model import Model
from counterpoint.types import Document, Ragged

LAYOUT = {"l": SetLayout(oracle.DIM, "static", "float32", ids=True)}
PLAIN = IndexSettings(codec="float32", lexical=None)
SIZE = 8
TABLES = st.lists(
    st.lists(oracle.INTEGERS, min_size=oracle.DIM, max_size=oracle.DIM), min_size=SIZE, max_size=SIZE
)
IDS = st.lists(st.integers(0, SIZE - 1), max_size=7)


def packed(texts, table):
    ids = [np.array(text, np.int64) for text in texts]
    return Ragged.from_list([table[numbers] for numbers in ids], ids, dim=table.shape[1])


def written(folder, texts, table, batch=100):
    with SegmentWriter(folder, LAYOUT) as writer:
        for at in range(0, len(texts), batch):
            documents = [Document(str(i), "") for i in range(at, min(at + batch, len(texts)))]
            writer.append(documents, {"l": packed(texts[at : at + batch], table)})
    return StaticStore("l", LAYOUT["l"], [Piece(CheckedFolder(folder), len(texts), LAYOUT["l"])])


class Table:
    """A model of which a static set wants its table."""

    def __init__(self, table):
        self.table = lambda name: table


@settings(deadline=None, max_examples=80)
@given(
    table=TABLES,
    texts=st.lists(IDS, min_size=1, max_size=9),
    queries=st.lists(IDS, min_size=1, max_size=3),
    exact=st.booleans(),
    floor=st.booleans(),
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(0, 5), st.integers(1, 9)),
)
def test_scores_are_those_of_the_match_matrix(table, texts, queries, exact, floor, sizes):
    table, floor = np.array(table, np.float32), floor or exact
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        for constant, value in zip(("BLOCK", "CHUNK", "VISITS"), sizes, strict=False):
            homes = {"BLOCK": static_ids_module, "CHUNK": counted_module, "VISITS": static_module}
            patch.setattr(homes[constant], constant, value)
        found = written(Path(name) / "s", texts, table, batch=sizes[3]).bound(Table(table))
        for query in queries:
            rows = [(table[number].tolist(), number) for number in query]
            wanted = [
                oracle.maxsim(
                    rows, [(table[number].tolist(), number) for number in text], exact=exact, floor0=floor
                )
                for text in texts
            ]
            asked = packed([query], table)
            query = Asked(asked[0], asked.ids_of(0) if exact else None, floor)
            assert found.all_scores([query])[0].tolist() == wanted
            some = np.array([len(texts) - 1, 0, 0])
            assert found.scores(query, some).tolist() == [wanted[i] for i in some]
        kept = found.take(np.arange(len(texts)))
        assert [kept.ids_of(i).tolist() for i in range(len(texts))] == [sorted(set(text)) for text in texts]
        assert np.array_equal(kept.values, table[kept.ids])


@pytest.mark.parametrize("visits", [0, 1, 4, 100])
def test_real_numbers_come_out_the_same_to_the_last_bit(tmp_path, monkeypatch, visits):
    """Maxima are taken from one product of query and table, and added in one order."""
    monkeypatch.setattr(static_module, "VISITS", visits)
    monkeypatch.setattr(static_ids_module, "BLOCK", 64)
    rng = np.random.default_rng(0)
    table = rng.normal(size=(500, 32)).astype(np.float32)
    frequent = 1 / np.arange(1, 501)
    texts = [rng.choice(500, rng.integers(0, 60), p=frequent / frequent.sum()) for _ in range(300)]
    layout = {"l": replace(LAYOUT["l"], dim=32)}
    with SegmentWriter(tmp_path / "s", layout) as writer:
        writer.append([Document(str(i), "") for i in range(300)], {"l": packed(texts, table)})
    store = StaticStore("l", layout["l"], [Piece(CheckedFolder(tmp_path / "s"), 300, layout["l"])])
    (ids,), found = store.parts, store.bound(Table(table))
    query = packed([rng.choice(500, 20)], table)[0] * rng.random((20, 1), dtype=np.float32)
    (scores,) = found.all_scores([Asked(query)])
    similarity = table[ids.vocabulary] @ query.T
    for i, text in enumerate(texts):
        places = np.searchsorted(ids.vocabulary, text)
        best = [max((similarity[place, row] for place in places), default=0) for row in range(20)]
        total = np.float32(0)
        for similar in best:
            total += np.float32(similar)
        assert scores[i] == total
        assert found.scores(Asked(query), np.array([i])) == total
    some = rng.permutation(300)[:50]
    assert np.array_equal(found.scores(Asked(query), some), scores[some])
    np.testing.assert_allclose(scores, maxsim_scores(query, packed(texts, table)), rtol=1e-5, atol=1e-5)


def test_a_document_keeps_each_id_once_and_no_vector(tmp_path):
    manifest = build_index(DOCUMENTS, StaticModel(), tmp_path / "i", PLAIN)
    made = StaticModel().encode_document([d.full_text for d in DOCUMENTS])["l"]
    distinct = [sorted(set(made.ids_of(i).tolist())) for i in range(len(DOCUMENTS))]
    ends = {name.rsplit("/")[-1] for name in manifest.files}
    assert {name for name in ends if name.startswith("l.")} == {
        "l.ranks.npy", "l.lengths.npy", "l.vocabulary.npy", "l.frequencies.npy",
    }  # fmt: skip
    with Index(tmp_path / "i") as index:
        info = index.info()
        bound = index.bound(StaticModel())
        taken = bound.take("l", np.array([3, 0, 2, 3]))
    assert [taken.ids_of(i).tolist() for i in range(4)] == [distinct[3], distinct[0], [], distinct[3]]
    np.testing.assert_array_equal(taken.values, StaticModel().table("l")[taken.ids])
    found, stored, header = info["sets"]["l"], info["bytes_by_purpose"], 128
    ids = sum(map(len, distinct))
    assert (found["vectors"], found["stored_ids"]) == (len(made.values), ids) and ids < len(made.values)
    assert found["static"] and not info["sets"]["h"]["static"] and info["sets"]["h"]["stored_ids"] is None
    assert stored["ids: l"] == header + 2 * ids
    assert stored["offsets: l"] == header + 4 * len(DOCUMENTS)
    assert "vectors: l" not in stored and stored["other"] == 0
    assert found["bytes"] == sum(size for purpose, size in stored.items() if purpose.endswith(": l"))
    assert found["bytes_per_vector"] == found["bytes"] / len(made.values)


def test_ids_beyond_two_bytes(tmp_path):
    """What two bytes must hold is the number of distinct ids that occur, not the largest id."""
    few = [np.array([2**31, 5, 2**31]), np.array([5])]
    many = [np.arange(70_000)]
    for name, texts, dtype in (("few", few, np.uint16), ("many", many, np.uint32)):
        with SegmentWriter(tmp_path / name, LAYOUT) as writer:
            rows = [np.zeros((len(text), oracle.DIM), np.float32) for text in texts]
            writer.append(
                [Document(str(i), "") for i in range(len(texts))],
                {"l": Ragged.from_list(rows, texts, dim=oracle.DIM)},
            )
        piece = Piece(CheckedFolder(tmp_path / name), len(texts), LAYOUT["l"])
        (ids,) = StaticStore("l", LAYOUT["l"], [piece]).parts
        assert ids.ranks.all().dtype == dtype
        for i, text in enumerate(texts):
            mine = ids.vocabulary[ids.ranks[ids.offsets[i] : ids.offsets[i + 1]]]
            assert mine.tolist() == sorted(set(text.tolist()))


def test_several_segments_are_searched_as_one(tmp_path):
    model = StaticModel(whole=True)
    build_index(DOCUMENTS, model, tmp_path / "one", PLAIN)
    first = build_index(DOCUMENTS[:4], model, tmp_path / "two", PLAIN)
    second = build_index(DOCUMENTS[4:], model, tmp_path / "other", PLAIN)
    shutil.copytree(tmp_path / "other" / "segments", tmp_path / "two" / "segments", dirs_exist_ok=True)
    both = {"segments": first.segments + second.segments, "files": {**first.files, **second.files}}
    replace(first, **both).write(tmp_path / "two")
    query = model.encode_query(["brown turtles in a box"])["l"][0]
    documents = model.encode_document([d.full_text for d in DOCUMENTS])["l"]
    wanted = maxsim_scores(query, documents).tolist()
    for name in ("one", "two"):
        with Index(tmp_path / name) as index:
            bound = index.bound(model)
            (found,) = bound.sets["l"].all_scores([Asked(query)])
            assert found.tolist() == wanted
            some = np.array([5, 0, 3])
            assert bound.sets["l"].scores(Asked(query), some).tolist() == [wanted[i] for i in some]
            assert bound.idf("l", np.array([model.id_of("box")])) == pytest.approx(
                np.log1p((6 - 2 + 0.5) / (2 + 0.5))
            )
    assert len(Manifest.read(tmp_path / "two").segments) == 2


def test_what_does_not_fit_is_refused(tmp_path):
    build_index(DOCUMENTS, StaticModel(), tmp_path / "i", PLAIN)
    with Index(tmp_path / "i") as index:
        with pytest.raises(ConfigError, match=r"the static set 'l' are not in the index.*Index.bound"):
            index.take("l", np.array([0]))
        with pytest.raises(ArtifactError, match="built with the model"):
            index.bound(StaticModel(dim=7))
        small = StaticModel()
        small.table = lambda name: np.zeros((3, 6), np.float32)
        with pytest.raises(ShapeError, match="ends at 2"):
            index.bound(small).sets["l"].all_scores([Asked(np.zeros((1, 6), np.float32))])
        with pytest.raises(ShapeError, match="query vectors of 5 dimensions, a table of 6"):
            index.bound(StaticModel()).sets["l"].all_scores([Asked(np.zeros((1, 5), np.float32))])
    ranks = next((tmp_path / "i").rglob("l.ranks.npy"))
    np.save(ranks, np.load(ranks)[:-1])
    with pytest.raises(ArtifactError, match=r"do not fit its lengths"):
        StaticStore("l", LAYOUT["l"], [Piece(CheckedFolder(ranks.parent), len(DOCUMENTS), LAYOUT["l"])])


def test_an_index_of_the_second_format_opens(tmp_path, monkeypatch):
    manifest = build_index(DOCUMENTS, HashModel(), tmp_path / "i")
    layouts = {
        name: {
            "dim": 16,
            "pooled": name == "mean",
            "codec": "int8",
            "ids": name == "words",
            "inverted": False,
        }
        for name in manifest.settings["layouts"]
    }
    monkeypatch.setattr("counterpoint.index.manifest.VERSION", 2)
    replace(manifest, settings={**manifest.settings, "layouts": layouts}).write(tmp_path / "i")
    assert json.loads((tmp_path / "i" / "manifest.json").read_text())["version"] == 2
    query = HashModel().encode_query(["brown fox"])["words"][0]
    with Index(tmp_path / "i") as index:
        assert index.layouts["words"].kind == "several"
        assert index.sets["words"].all_scores([Asked(query)]).shape == (1, 6)


@pytest.mark.shared
@pytest.mark.minilm
@pytest.mark.parametrize("name", ["cranfield", "med"])
def test_a_real_collection_takes_at_most_three_bytes_a_token(shared, tmp_path, name):
    head = Static(projection=Linear(128, bias=False), normalise=True)
    encoder = Encoder(Transformer("minilm"), {"l": head}, document=TextInput(max_length=180))
    model = Model(DualEncoder(encoder)).setup().eval()
    documents = list(open_collection(str(shared / "data" / name)).documents())[:500]
    build_index(documents, model, tmp_path / "i", IndexSettings(lexical=None))
    with Index(tmp_path / "i") as index:
        found = index.info()["sets"]["l"]
        assert found["vectors"] > 50_000 and found["bytes_per_vector"] <= 3
        bound = index.bound(model)
        query = model.encode_query(["What is the effect of pressure on a wing?"])["l"]
        vectors = model.encode_document([d.full_text for d in documents])["l"]
        np.testing.assert_allclose(
            bound.sets["l"].all_scores([Asked(query[0])])[0], maxsim_scores(query[0], vectors), atol=1e-5
        )
