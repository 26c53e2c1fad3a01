"""The file of measured figures: whole, with sources, and read as it is meant."""

import pytest
from tests.fakes import HashModel, UniModel
from tests.index.test_sharding import documents

from counterpoint.errors import ConfigError
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.scale import Figures, figures, kind_of

DATA = {
    "sources": {},
    "sketch": {"least": 100, "bytes": [50, 60]},
    "process": {"bytes": [1e8, 2e8]},
    "build": {
        "longest": 100, "encode_per_word": [0.1, 0.3], "divide_per_word": 0.001,
        "write_per_word": {"lexical": 0.002, "pooled": 0.001, "words": [0.01, 0.02]},
    },
    "stages": [
        {"name": "encode", "parts": ["pooled", "words"], "once": [5, 9]},
        {"name": "BM25", "parts": ["lexical"], "per_million": [3, 24]},
    ],
    "models": {
        "m": {
            "codec": "1-bit", "dim": 10, "parts": ["lexical", "pooled", "words"], "rows": [2, 0.5],
            "bytes": {
                "1-bit": {
                    "documents": [40, 8], "lexical": [100, 1], "vectors: mean": [400, 0],
                    "vectors: words": [0, 20], "offsets: words": [4, 0], "means: words": [300, 0],
                },
                "int8": {"documents": [40, 8]},
            },
        },
        "none": {"codec": "-", "parts": ["lexical"], "bytes": {"-": {"lexical": [-5, 0]}}},
    },
}  # fmt: skip


def test_costs_by_hand():
    of = Figures(DATA)
    kind = of.kind("m", None, 200)
    assert kind.fitted == (2 + 0.5 * 200) * 10
    low, high = (of.costs(kind, 50, end) for end in (False, True))
    assert high.stored == {
        "documents": 1640, "lexical": 300, "vectors: mean": 400, "vectors: words": 4000, "offsets: words": 4,
        "means: words": 300,
    }  # fmt: skip
    assert low.stored["means: words"] == 0  # grows slower than the collection
    assert low.resident == 300 + 400 + 4 and high.resident == 300 + 400 + 4000 + 4 + 300
    assert (low.encode, high.encode) == (10.0, 30.0)  # of the 100 words that are read
    assert (low.write, high.write) == (pytest.approx(2.6), pytest.approx(4.6))
    assert [(each.name, each.once, each.per_million) for each in high.stages] == [
        ("encode", 9, 0), ("BM25", 0, 24),
    ]  # fmt: skip
    assert low.building == 2 * 1020 and low.divide == pytest.approx(0.2)


def test_large_collections_have_a_sketch_in_place_of_pooled_vectors_in_memory():
    of = Figures(DATA)
    low = of.costs(of.kind("m", None, 200), 1000, False)
    assert low.stored["sketch"] == 50 and low.resident == 300 + 50 + 4


def test_other_codecs_and_models():
    of = Figures(DATA)
    assert of.kind("m", "int8", 1).fitted == 0
    kind = of.kind("none", None, 10)
    costs = of.costs(kind, 1e6, True)
    assert kind.stored == {"lexical": 0.0} and costs.encode == 0 and "sketch" not in costs.stored
    with pytest.raises(ConfigError, match="--model x: not measured; measured are m, none"):
        of.kind("x", None, 1)


def test_an_index_tells_its_parts(tmp_path):
    build_index(documents(), HashModel(), tmp_path / "i", IndexSettings(codec="1-bit"))
    with Index(tmp_path / "i") as index:
        info = index.info()
    kind = kind_of(info)
    assert kind.parts == {"lexical", "pooled", "words"}
    assert kind.fitted == pytest.approx(16 * info["sets"]["words"]["vectors"] / info["passages"])
    assert sum(kind.stored.values()) == pytest.approx(info["bytes"] / info["passages"])
    with pytest.raises(ConfigError, match="has no documents"):
        kind_of({**info, "passages": 0})


def test_exact_words_are_stored_twice_in_a_large_collection(tmp_path, monkeypatch):
    settings = IndexSettings(codec="int8", search={"weights": {"cls": 1.0, "words": 1.0}, "exact": ["words"]})
    build_index(documents(), UniModel(dim=5), tmp_path / "small", settings)
    monkeypatch.setattr("counterpoint.index.rows_writer.LEAST", 1)
    build_index(documents(), UniModel(dim=5), tmp_path / "large", settings)
    with Index(tmp_path / "small") as small, Index(tmp_path / "large") as large:
        kinds = [kind_of(index.info()) for index in (small, large)]
        of, stored = Figures(DATA), large.info()["bytes_by_purpose"]["sorted rows: words"] / len(large)
    expected, known = (of.costs(kind, 100, False).stored for kind in kinds)
    assert "sorted rows" not in known and known["sorted rows: words"] == pytest.approx(stored)
    assert expected["sorted rows"] == pytest.approx(stored, rel=0.1)  # of so few, headers are a tenth
    assert "sorted rows" not in of.costs(kinds[0], 99, False).stored


def test_the_shipped_figures_are_whole():
    of = figures()
    for source in of.sources.values():
        assert source.keys() == {"what", "command", "where", "machine", "commit", "date"}
        assert all(source.values())
    for model in of.models:
        for codec in of._data["models"][model]["bytes"]:
            kind = of.kind(model, codec, 120)
            low, high = (of.costs(kind, 1e6, end) for end in (False, True))
            assert 0 < low.resident <= high.resident <= sum(high.stored.values())
            assert sum(low.stored.values()) <= sum(high.stored.values())
            assert 0 <= low.encode <= high.encode and 0 < low.write <= high.write
            for one, other in zip(low.stages, high.stages, strict=True):
                assert one.once <= other.once and one.per_million <= other.per_million
            assert sum(each.per_shard for each in low.stages) > 0
    assert of.latencies.at(0.5) < of.latencies.at(0.99)
