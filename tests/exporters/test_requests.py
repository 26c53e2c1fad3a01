"""OpenSearch, Weaviate and Vespa: requests to a server, files in a folder, and queries that rank alike."""

import json
import re

import pytest
from tests.exporters.notes import QUERIES, agree, build, documents, hits
from tests.exporters.servers import ENGINES, serving
from tests.fakes import HashModel

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.exporters import query_for
from counterpoint.library.opened import OpenIndex
from counterpoint.types import Document


@pytest.fixture(scope="module", params=list(ENGINES))
def written(request, folder, tmp_path_factory):
    """An engine with everything, what the export said, and the same as files."""
    place = tmp_path_factory.mktemp(request.param) / "files"
    engine = ENGINES[request.param]()
    with OpenIndex(folder, HashModel()) as notes, serving(engine) as url:
        told = notes.export_to(request.param, url=url)
        notes.export_to(request.param, folder=place)
    if request.param == "vespa":
        engine.package = (place / "schemas" / "my_notes.sd").read_text()
    return request.param, engine, told, place


def test_everything_is_sent(written, notes):
    name, engine, told, _ = written
    assert told["written"] == told["documents"] == len(engine.documents) == len(notes)
    values = {"opensearch": lambda x: x, "weaviate": lambda x: x["properties"], "vespa": lambda x: x}[name]
    by_id = {values(x).get("doc_id", values(x).get("id")): values(x) for x in engine.documents.values()}
    for position in notes.index.positions.tolist():
        document = notes.index.document(position)
        found = by_id[document.id]
        assert (found["title"], found["text"]) == (document.title, document.text)
        metadata = found["metadata"] if name == "opensearch" else json.loads(found["metadata"])
        assert metadata == dict(document.metadata)
        year = metadata.get("year") if name == "opensearch" else found.get("metadata_year")
        assert year == document.metadata.get("year")
        assert found.get("parent") == document.parent


@pytest.mark.parametrize("query", QUERIES)
def test_single_parts_rank_as_in_the_index(written, notes, query):
    name, engine, _, _ = written
    for workflow in ("lexical", "dense", "words"):
        ours = hits(notes.search(query, workflow=workflow))
        theirs = engine.search(query_for(notes, name, query, workflow=workflow))
        if name == "opensearch" and workflow == "dense":
            ours = [(doc, 1 + score if score >= 0 else 1 / (1 - score)) for doc, score in ours]
        assert agree(ours, theirs)


@pytest.mark.parametrize("query", QUERIES)
def test_a_hybrid_ranks_as_in_the_index(written, notes, query):
    name, engine, _, _ = written
    ours, theirs = hits(notes.search(query)), engine.search(query_for(notes, name, query))
    if name == "opensearch":  # whose scores of vectors are another function of the products
        assert len({doc for doc, _ in ours} & {doc for doc, _ in theirs}) >= 8
    else:
        assert agree(ours, theirs)


def test_files_hold_what_is_sent(written):
    name, engine, _, place = written
    assert json.loads((place / "export.json").read_text()) == {
        "engine": name,
        "collection": "my_notes",
        "documents": 42,
    }
    (path,) = (place / "documents").iterdir()
    text, found = path.read_text(), {}
    if name == "opensearch":
        lines = [json.loads(line) for line in text.splitlines()]
        found = {a["index"]["_id"]: b for a, b in zip(lines[::2], lines[1::2], strict=True)}
        assert json.loads((place / "index.json").read_text()) == engine.schema
    elif name == "weaviate":
        found = {each["id"]: each for each in json.loads(text)["objects"]}
        assert json.loads((place / "collection.json").read_text()) == engine.schema
    else:
        rows = [json.loads(line) for line in text.splitlines()]
        found = {row["put"].removeprefix("id:my_notes:my_notes::"): row["fields"] for row in rows}
    assert found == engine.documents


def test_files_are_replaced_only_if_asked_for(written, notes, tmp_path):
    name, place = written[0], tmp_path / "files"
    notes.export_to(name, folder=place)
    with pytest.raises(ArtifactError, match="already exists"):
        notes.export_to(name, folder=place)
    notes.export_to(name, folder=place, overwrite=True)

    def stop(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        notes.export_to(name, folder=tmp_path / "other", on_progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


@pytest.mark.parametrize("name", list(ENGINES))
def test_a_server_gets_what_it_lacks(name, tmp_path, monkeypatch):
    from counterpoint.exporters import contents

    monkeypatch.setattr(contents, "READ", 4)
    monkeypatch.setenv("COUNTERPOINT_EXPORT_KEY", "secret")
    build(tmp_path / "my_notes", documents(8))
    engine = ENGINES[name]()
    with OpenIndex(tmp_path / "my_notes", HashModel()) as notes, serving(engine) as url:
        engine.refuse = lambda document_id: document_id == "doc 5/ü"
        with pytest.raises(ArtifactError, match="the same command continues"):
            notes.export_to(name, url=url)
        assert {headers["authorization"] for _, _, headers in engine.seen} == {"Bearer secret"}
        engine.refuse = lambda document_id: False
        told = notes.export_to(name, url=url)
        assert told["unchanged"] >= 4 and told["written"] + told["unchanged"] == 10
        assert notes.export_to(name, url=url)["written"] == 0
        notes.update([{"id": "empty", "text": "no longer"}])
        assert notes.export_to(name, url=url)["written"] == 1
        notes.delete("empty")
        told = notes.export_to(name, url=url)
        assert any(line.startswith("1 documents of the collection") for line in told["not_held"])


@pytest.mark.parametrize("name", ["opensearch", "weaviate"])
def test_another_collection_of_that_name_is_left_alone(name, written, tmp_path):
    engine = ENGINES[name]()
    build(tmp_path / "my_notes", [Document("a", "fox")], lexical=None)
    build(tmp_path / "other", documents(2))
    with serving(engine) as url:
        with OpenIndex(tmp_path / "my_notes", HashModel()) as one:
            one.export_to(name, url=url)
        with OpenIndex(tmp_path / "other", HashModel()) as two:
            with pytest.raises(ConfigError, match="has other fields"):
                two.export_to(name, url=url, name="my_notes")


def test_a_schema_that_is_not_deployed_is_an_error(notes):
    engine = ENGINES["vespa"]()
    engine.schema = None
    with serving(engine) as url, pytest.raises(ArtifactError, match="Vespa: the server answered 400"):
        notes.export_to("vespa", url=url)


# -- the formats, by the engines' own packages --------------------------------------------------------------


def test_a_schema_is_as_vespas_own_package_writes_it(folder, tmp_path):
    package = pytest.importorskip("vespa.package")
    with OpenIndex(folder, HashModel()) as notes:
        notes.export_to("vespa", folder=tmp_path / "files")
    fields = [
        package.Field(name, kind, indexing=["attribute", "summary"], attribute=["fast-search"])
        for name, kind in {
            "doc_id": "string", "metadata_year": "long", "metadata_draft": "bool", "metadata_a_b": "string"
        }.items()
    ]  # fmt: skip
    plain = [package.Field(name, "string", indexing=["summary"]) for name in ("title", "text", "metadata")]
    tested = [
        package.Field(name, kind, indexing=["attribute", "summary"])
        for name, kind in {"parent": "string", "start": "long", "stamp": "string"}.items()
    ]
    others = [
        package.Field(
            "terms", "array<string>", indexing=["index"], match=["word"], index="enable-bm25", stemming="none"
        ),
        package.Field(
            "vector_mean",
            "tensor<float>(x[16])",
            indexing=["attribute", "index"],
            attribute=["distance-metric: dotproduct"],
        ),
        package.Field("vector_words", "tensor<float>(token{}, x[16])", indexing=["attribute"]),
    ]
    by_name = {field.name: field for field in [*fields, *plain, *tested, *others]}
    order = ["doc_id", "title", "text", "parent", "start", "metadata", "stamp", "metadata_year"]
    order += ["metadata_draft", "metadata_a_b", "terms", "vector_mean", "vector_words"]
    schema = package.Schema("my_notes", package.Document([by_name[name] for name in order]))
    words = "reduce(sum(query(vector_words) * attribute(vector_words), x), max, token)"
    parts = {
        "vector_mean": "sum(query(vector_mean) * attribute(vector_mean))",
        "vector_words": f"sum({words}, row)",
        "lexical": "bm25(terms) / 1.9",
    }
    inputs = [("query(vector_mean)", "tensor<float>(x[16])")]
    inputs += [("query(vector_words)", "tensor<float>(row{}, x[16])")]
    profile = package.RankProfile(
        "counterpoint",
        first_phase=" + ".join(f"query(scale_{name}) * part_{name}()" for name in parts),
        inputs=[*inputs, *((f"query(scale_{name})", "double", "0.0") for name in parts)],
        functions=[package.Function(f"part_{name}", expression) for name, expression in parts.items()],
        rank_properties=[("bm25(terms).k1", "0.9"), ("bm25(terms).b", "0.4")],
    )
    schema.add_rank_profile(profile)
    written = (tmp_path / "files" / "schemas" / "my_notes.sd").read_text()
    assert lines_of(written) == lines_of(schema.schema_to_text)


def lines_of(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_a_collection_is_as_weaviates_own_client_describes_it(folder, tmp_path):
    pytest.importorskip("weaviate")
    from weaviate.classes.config import Configure, VectorDistances
    from weaviate.collections.classes.config import DataType, StopwordsPreset, Tokenization
    from weaviate.collections.classes.config import _CollectionConfigCreate as Collection

    with OpenIndex(folder, HashModel()) as notes:
        notes.export_to("weaviate", folder=tmp_path / "files")
    found = json.loads((tmp_path / "files" / "collection.json").read_text())
    bm25 = {"bm25_k1": 0.9, "bm25_b": 0.4, "stopwords_preset": StopwordsPreset.NONE}
    own = Collection(
        name=found["class"],
        inverted_index_config=Configure.inverted_index(**bm25),
        vector_config=[
            kind.self_provided(
                name=name,
                vector_index_config=Configure.VectorIndex.hnsw(distance_metric=VectorDistances.DOT),
            )
            for kind, name in ((Configure.Vectors, "vector_mean"), (Configure.MultiVectors, "vector_words"))
        ],
    )._to_dict()
    for key in ("class", "invertedIndexConfig", "vectorConfig"):
        assert found[key] == own[key], key
    for each in found["properties"]:
        assert {DataType(kind) for kind in each["dataType"]}
        assert Tokenization(each.get("tokenization", "word"))
        assert re.fullmatch(r"[_A-Za-z][_0-9A-Za-z]{0,230}", each["name"]) and each["name"] not in (
            "id",
            "_id",
        )


def test_queries_are_those_that_opensearchs_own_client_knows(notes):
    """All but `knn`, which the client has not."""
    opensearch = pytest.importorskip("opensearchpy")
    bodies = [
        query_for(notes, "opensearch", QUERIES[0], workflow=workflow)["body"]
        for workflow in ("lexical", "words", "hybrid")
    ]
    again = [each["query"]["rescore_query"] for each in bodies[2]["rescore"]]
    assert len(again) == 1
    for query in [bodies[0]["query"], bodies[1]["query"], *bodies[2]["query"]["bool"]["should"], *again]:
        assert "knn" in query or opensearch.Q(query).to_dict() == query
