"""From Python: what is named at the root indexes, opens, searches and measures as the command line does."""

import inspect
import json
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from tests.cli.conftest import QUERIES
from tests.fakes import DOCUMENTS as TEXTS

import counterpoint as cp
from counterpoint.cli.main import main
from counterpoint.data import collection_of, open_collection
from counterpoint.encode import DualEncoder, Encoder, Mean, TokenVectors, Transformer
from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.index import Index, IndexSettings, build_index, keep_search
from counterpoint.library import BuildOptions, SearchOptions
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.presets import EARLIER
from counterpoint.search import Searcher, SearchSettings
from counterpoint.types import Document


@pytest.fixture
def made(tiny_bert_folder):
    """A model that was made in Python: nothing says where to load it from."""
    heads = {"mean": Mean(normalise=True), "tokens": TokenVectors()}
    search = {"weights": {"mean": 0.7, "lexical": 0.2, "tokens": 0.1}, "idf": {"tokens": 0.5}}
    encoder = DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), heads))
    return Model(encoder, search=search, codec="float16", analyzer="simple").setup()


# -- the root ----------------------------------------------------------------------------------------------


def test_the_root_has_what_a_program_names_and_loads_it_late():
    code = "import sys, counterpoint as cp; print('torch' in sys.modules, 'numpy' in sys.modules); "
    code += (
        "print(all(getattr(cp, name) is not None for name in cp.__all__), set(cp.__all__) <= set(dir(cp)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True", "True"]
    assert cp.Document is Document and cp.load_model is load_model and cp.Index is Index
    with pytest.raises(AttributeError, match="no attribute 'serach'"):
        _ = cp.serach


def test_index_is_the_call_and_the_package():
    assert callable(cp.index) and cp.index.build_index is build_index
    assert list(inspect.signature(cp.index).parameters)[:2] == ["source", "path"]


# -- indexing ----------------------------------------------------------------------------------------------


def frame(kind):
    pandas = pytest.importorskip(kind)
    return pandas.DataFrame(
        {"key": ["a", "b"], "head": ["One", None], "body": ["a cat", "a dog"], "n": [1, 2]}
    )


def items(kind):
    """Two documents, the texts of which end in a cat and a dog, in some form."""
    texts = ["a cat", "a dog"]
    return {
        "strings": lambda: (texts, {}),
        "iterator": lambda: (iter(texts), {}),
        "dicts": lambda: ([{"id": str(at), "text": text} for at, text in enumerate(texts)], {}),
        "beir": lambda: ([{"_id": str(at), "text": text, "n": at} for at, text in enumerate(texts)], {}),
        "documents": lambda: ([Document(str(at), text) for at, text in enumerate(texts)], {}),
        "collection": lambda: (collection_of([Document(str(at), text) for at, text in enumerate(texts)]), {}),
        "pandas": lambda: (frame("pandas"), {"id": "key", "title": "head"}),
        "polars": lambda: (frame("polars"), {"id": "key", "title": "head", "text": "body"}),
    }[kind]()


@pytest.mark.parametrize(
    "kind", ["strings", "iterator", "dicts", "beir", "documents", "collection", "pandas", "polars"]
)
def test_what_a_program_has_is_indexed(kind, tmp_path):
    source, named = items(kind)
    with cp.index(source, tmp_path / "i", model=None, **named) as notes:
        (hit,) = notes.search("cats")
        assert hit.text == "a cat" and hit.rank == 1 and len(notes) == 2 and notes.bytes > 0
        assert hit.title == ("One" if kind in ("pandas", "polars") else "")
        assert hit.metadata == (
            {"n": 1} if kind in ("pandas", "polars") else {"n": 0} if kind == "beir" else {}
        )
    with cp.open(tmp_path / "i") as again:
        assert again.search("cats")[0].id == hit.id


def test_ids_that_are_made_stay_when_documents_come_and_go(tmp_path):
    texts = ["one cat", "two dogs", "one cat"]
    with cp.index(texts, tmp_path / "i", model=None) as notes:
        first = {hit.text: hit.id for hit in notes.search("dogs")}
        assert sorted(hit.id for hit in notes.search("cat"))[1].endswith("-2")
    with cp.index(["a new one", *texts[1:]], tmp_path / "j", model=None) as notes:
        assert {hit.text: hit.id for hit in notes.search("dogs")} == first


@pytest.mark.parametrize(
    ("source", "error", "needles"),
    [
        (42, ConfigError, ["strings, dicts or Documents", "found int (42)"]),
        ({"a": "text"}, ConfigError, ["an iterable of strings", "found dict"]),
        (b"bytes", ConfigError, ["found bytes"]),
        (["fine", 7], ConfigError, ["item 2", "found int (7)"]),
        ([{"body of it": "text"}], DataError, ["item 1: no text", "'body of it'", "text="]),
        ([], DataError, ["no documents"]),
        ([Document("a", "x"), Document("a", "y")], DataError, ["'a'"]),
        ("nowhere.jsonl", DataError, ["no such file"]),
    ],
)
def test_what_cannot_be_indexed_is_named(source, error, needles, tmp_path):
    with pytest.raises(error) as caught:
        cp.index(source, tmp_path / "i", model=None)
    assert all(needle in str(caught.value) for needle in needles), str(caught.value)
    assert not (tmp_path / "i").exists()


def test_unknown_settings_are_answered_with_those_that_there_are(tmp_path):
    with pytest.raises(ConfigError, match="unknown setting .codek.; expected model, codec"):
        cp.index(["a"], tmp_path / "i", model=None, codek="int8")
    with cp.index(["a cat"], tmp_path / "i", model=None) as notes:
        with pytest.raises(ConfigError, match="unknown setting 'depth'; expected k, workflow"):
            notes.search("cat", depth=3)
        with pytest.raises(ConfigError, match="unknown part 'dense'"):
            notes.search("cat", weights={"dense": 1})
        with pytest.raises(ConfigError, match="finite number for 'lexical', found nan"):
            notes.search("cat", weights={"lexical": float("nan")})


# -- one door ----------------------------------------------------------------------------------------------


def test_an_index_of_a_model_made_in_python_opens_again(made, tmp_path, call):
    """The model is saved with the index, and the index has what the model asks for."""
    build_index(TEXTS, made, tmp_path / "i")
    with Index(tmp_path / "i") as index:
        settings = index.manifest.settings
        assert settings["codec"] == "float16" and settings["search"] == made.search
        assert index.manifest.settings["lexical"]["analyzer"] == "simple"
    with cp.open(tmp_path / "i") as notes:
        expected = notes.search("brown dogs")
        assert notes.model.fingerprint() == made.fingerprint()
    (tmp_path / "i").rename(tmp_path / "moved")
    code, out, err = call("search", tmp_path / "moved", "brown dogs", "--json")
    assert code == 0, err
    assert [(hit["id"], hit["score"]) for hit in json.loads(out)["hits"]] == [
        (h.id, h.score) for h in expected
    ]
    assert call("verify", tmp_path / "moved")[0] == 0
    assert main(["index", str(tmp_path / "nothing"), "-o", str(tmp_path / "moved"), "--overwrite"]) == 2
    assert len(list((tmp_path / "moved" / "models").iterdir())) == 1


def test_an_encoder_alone_is_a_model_and_anything_else_is_named(made, tmp_path):
    """A DualEncoder is indexed as the same encoder is that was saved and loaded."""
    made.encoder.save(tmp_path / "encoder")
    with cp.index(["a cat", "a dog"], tmp_path / "one", model=made.encoder) as one:
        with cp.index(["a cat", "a dog"], tmp_path / "two", model=tmp_path / "encoder") as two:
            found, expected = ([(hit.id, hit.score) for hit in notes.search("cat")] for notes in (one, two))
    assert found == expected and one.model.fingerprint() == two.model.fingerprint()
    with pytest.raises(ConfigError, match="Model or a DualEncoder, found Encoder"):
        cp.index(["a cat"], tmp_path / "three", model=made.encoder.query)
    assert not (tmp_path / "three").exists()


def test_a_model_that_is_replaced_goes_with_its_index(made, tmp_path):
    build_index(TEXTS, made, tmp_path / "i")
    (old,) = (tmp_path / "i" / "models").iterdir()
    build_index(TEXTS, made, tmp_path / "i", overwrite=True)
    (new,) = (tmp_path / "i" / "models").iterdir()
    assert new != old and cp.open(tmp_path / "i").search("fox")
    build_index(TEXTS, None, tmp_path / "i", overwrite=True)
    assert not list((tmp_path / "i" / "models").iterdir())


def test_something_beside_the_model_of_an_index_survives(made, tmp_path):
    build_index(TEXTS, made, tmp_path / "i")
    (folder,) = (tmp_path / "i" / "models").iterdir()
    (folder / "model" / "notes.txt").write_text("mine")
    build_index(TEXTS, made, tmp_path / "i", overwrite=True)
    assert (folder / "model" / "notes.txt").read_text() == "mine"


def test_a_model_knows_its_source_until_it_is_changed(made, tmp_path):
    assert made.source is None
    made.save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    assert model.source == str(tmp_path / "model")
    with torch.no_grad():
        next(iter(model.parameters())).add_(1)
    assert model.source is None


def test_python_and_the_command_line_build_one_index(collection, made, tmp_path, call):
    made.save(tmp_path / "model")
    code, _, err = call("index", collection, "-o", tmp_path / "by-shell", "--model", tmp_path / "model")
    assert code == 0, err
    named = cp.index(collection, tmp_path / "by-name", model=tmp_path / "model")
    given = cp.index(open_collection(collection), tmp_path / "by-model", model=load_model(tmp_path / "model"))
    build_index(open_collection(collection).documents(), load_model(tmp_path / "model"), tmp_path / "by-hand")
    manifests = [Index(tmp_path / name).manifest for name in ("by-shell", "by-name", "by-model", "by-hand")]
    assert len({json.dumps(m.settings, sort_keys=True) for m in manifests}) == 1
    assert len({json.dumps(dict(m.model), sort_keys=True) for m in manifests}) == 1
    for query in QUERIES.values():
        for asked, options in (
            ({}, []),
            ({"workflow": "lexical"}, ["-w", "lexical"]),
            ({"weights": {"mean": 1, "lexical": 2}}, ["--weights", "mean=1 lexical=2"]),
            ({"feedback": (0.3, 2)}, ["--feedback", "0.3,2"]),
            ({"fusion": "rrf"}, ["--fusion", "rrf"]),
        ):
            _, out, _ = call("search", tmp_path / "by-shell", query, "--json", *options)
            wanted = [(hit["id"], hit["score"]) for hit in json.loads(out)["hits"]]
            for library in (named, given):
                assert [(hit.id, hit.score) for hit in library.search(query, **asked)] == wanted
    _, out, _ = call("evaluate", collection, "--index", tmp_path / "by-shell", "--json")
    assert json.loads(out)["measures"] == named.evaluate(collection).measures


def test_a_collection_of_other_documents_is_noticed(collection, made, tmp_path):
    other = cp.index(["about the sea", "about a fox"], tmp_path / "i", model=made)
    with pytest.warns(UserWarning, match="none of the documents found is judged for any query"):
        assert set(other.evaluate(collection).measures.values()) == {0}


@pytest.mark.parametrize("query", [5, None, {"a": "text"}, ["text", 5]])
def test_only_texts_are_queries(query, tmp_path):
    notes = cp.index(TEXTS, tmp_path / "i", model=None)
    with pytest.raises(ConfigError, match="query: expected a text or a list of texts, found"):
        notes.search(query)


def test_defaults_are_the_same_everywhere(call):
    import typer

    from counterpoint.cli.main import app

    commands = typer.main.get_command(app).commands
    for command, options in (("index", BuildOptions()), ("search", SearchOptions())):
        defaults = {p.name: p.default for p in commands[command].params}
        shared = defaults.keys() & type(options).__dataclass_fields__.keys() - {"explain"}  # there, how much
        assert len(shared) > 5
        assert {name: defaults[name] for name in shared} == {name: getattr(options, name) for name in shared}


def test_several_queries_and_lexical_search_without_the_model(made, tmp_path):
    made.save(tmp_path / "model")
    notes = cp.index(TEXTS, tmp_path / "i", model=tmp_path / "model")
    answers = notes.search(["fox", "bridge"], k=1)
    assert [answer[0].id for answer in answers] == [notes.search(q, k=1)[0].id for q in ("fox", "bridge")]
    (tmp_path / "model").rename(tmp_path / "elsewhere")
    assert cp.open(tmp_path / "i").search("fox", workflow="lexical")[0].parts.keys() == {"lexical"}
    with pytest.raises(ArtifactError):
        cp.open(tmp_path / "i").search("fox")
    assert cp.open(tmp_path / "i", tmp_path / "elsewhere").search("fox")[0].id == notes.search("fox")[0].id
    assert IndexSettings() != made.index_settings()


def test_a_searcher_keeps_the_stored_settings_that_are_not_replaced(made, tmp_path):
    notes = cp.index(TEXTS, tmp_path / "i", made)
    stored = notes.searcher().settings
    assert stored.weights == {"mean": 0.7, "lexical": 0.2, "tokens": 0.1} and stored.candidates == 200
    found = notes.searcher(candidates=500)
    assert found.settings == replace(stored, candidates=500)
    assert found.search("fox", 1).hits == notes.search("fox", 1).hits
    assert notes.searcher().settings == stored
    weighed = notes.searcher(weights={"lexical": 1.0}).settings
    assert (weighed.weights, weighed.adapt, weighed.idf) == ({"lexical": 1.0}, {}, {"tokens": 0.5})


def test_options_that_combine_parts_are_refused_where_one_part_scores(made, tmp_path):
    search = {"weights": {"mean": 0.7, "lexical": 0.2, "tokens": 0.1}, "adapt": {"lexical": 1.0}}
    cp.index(TEXTS, tmp_path / "i", made).close()
    keep_search(tmp_path / "i", search)
    with cp.open(tmp_path / "i") as notes:
        for workflow, part in (("lexical", "lexical"), ("dense", "mean"), ("words", "tokens")):
            for given in (
                {"weights": {part: 1.0, "mean" if part == "lexical" else "lexical": 2.0}},
                {"fusion": "rrf"},
                {"adapt": True},
            ):
                name = next(iter(given))
                with pytest.raises(
                    ConfigError, match=f"{name}: for several parts, but workflow {workflow} has only"
                ):
                    notes.search("fox", workflow=workflow, **given)
            plain = notes.search("fox", workflow=workflow).hits
            assert notes.search("fox", workflow=workflow, weights={part: 3.0}, adapt=False).hits == plain
        with pytest.raises(ConfigError, match="weights and adapt and fusion: for several parts"):
            notes.search("fox", workflow="lexical", weights={"mean": 1.0}, adapt=True, fusion="rrf")
        for workflow in ("hybrid", "dense-words"):  # one weight among several parts is a choice
            assert notes.search("fox", workflow=workflow, weights={"mean": 1.0}, fusion="rrf").hits


def test_new_weights_of_a_searcher_are_fixed_unless_adapt_is_given(made, tmp_path):
    cp.index(TEXTS, tmp_path / "i", made).close()
    way = {"lexical": 1.0}
    keep_search(tmp_path / "i", {"weights": {"mean": 0.8, "lexical": 0.2}, "adapt": way})
    with cp.open(tmp_path / "i") as notes:
        weights = {"mean": 0.5, "lexical": 0.5}
        fixed, follows = notes.searcher(weights=weights), notes.searcher(weights=weights, adapt=way)
        assert (fixed.settings.adapt, fixed.settings.follows_query) == (way, False)
        assert follows.settings.follows_query and not notes.searcher(adapt={}).settings.follows_query
        keep_search(tmp_path / "i", fixed.settings.to_dict())
        assert notes.refresh() and not notes.searcher().settings.follows_query
        for wanted in (notes.searcher(adapt=way), notes.searcher(SearchOptions(adapt=True))):
            assert wanted.settings.follows_query
        assert not notes.searcher(SearchOptions(weights=weights)).settings.follows_query


@pytest.mark.parametrize(
    ("given", "needle"),
    [
        ({"candidate": 5}, "unknown setting 'candidate'; .*did you mean 'candidates'"),
        ({"candidates": 0}, "search.candidates: expected a whole number from 1 up, found 0"),
        ({"weights": {"lexial": 1.0}}, "unknown part 'lexial'; expected lexical"),
        ({"options": {"candidates": 5}}, "settings by name, as in searcher.candidates=500., found {'cand"),
    ],
)
def test_wrong_settings_of_a_searcher_are_named(given, needle, tmp_path):
    notes = cp.index(TEXTS, tmp_path / "i", model=None)
    with pytest.raises(ConfigError, match=needle):
        notes.searcher(**given)


def test_settings_made_from_nothing_are_told_where_the_stored_ones_are(made, tmp_path):
    index = cp.index(TEXTS, tmp_path / "i", made).index
    with pytest.raises(ConfigError, match="has a weight; SearchSettings.for_index"):
        Searcher(index, made, SearchSettings(candidates=500)).search("fox")
    with pytest.raises(ConfigError, match=r"use counterpoint.open\(folder\).searcher\(\), or Searcher\("):
        Searcher(index).search("fox")


@pytest.mark.minilm
@pytest.mark.parametrize("preset", EARLIER)
def test_an_index_of_an_earlier_preset_is_searched_with_it(preset, tmp_path):
    for number, make in enumerate(EARLIER[preset]):
        older = make().setup().eval().came_from(preset)
        folder = tmp_path / f"{number}"
        build_index([Document("a", "call checkIfEmpty")], older, folder, older.index_settings(preset))
        with cp.open(folder) as opened:
            assert opened.search("checkIfEmpty", 1)[0].id == "a"
            assert opened.model is not None and opened.model.fingerprint() == older.fingerprint()
            assert opened.model.fingerprint() != load_model(preset).fingerprint()


@pytest.mark.parametrize("source", ["csv", "pandas"])
def test_a_table_must_have_the_metadata_with_a_type(source, tmp_path):
    table = frame("pandas") if source == "pandas" else tmp_path / "t.csv"
    if source == "csv":
        table.write_text("key,head,body,n\na,One,a cat,1\n")
    with pytest.raises(
        DataError, match="no column 'm' for the metadata; there are 'key', 'head', 'body', 'n'"
    ):
        cp.index(table, tmp_path / "i", model=None, metadata="n:int,m:int")


@pytest.mark.parametrize("option", ["metadata", "include"])
def test_a_mapping_where_names_are_wanted_is_refused(option, tmp_path):
    with pytest.raises(ConfigError, match=f"{option}: expected texts, .* found a mapping"):
        cp.index([{"text": "a cat", "n": 1}], tmp_path / "i", model=None, **{option: {"n": "int"}})
    assert not (tmp_path / "i").exists()


def test_metadata_with_a_type_that_no_record_has_is_told(tmp_path):
    rows = [{"text": "a cat"}, {"text": "a dog", "n": 1}]
    with pytest.warns(UserWarning) as told:
        cp.index(rows, tmp_path / "i", model=None, metadata="n:int,m:int").close()
    assert [str(each.message) for each in told] == ["no document has the metadata field 'm'"]


def test_a_condition_on_metadata_from_table_to_hits(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("id,text,year,lang\n1,a whale,2001,en\n2,a whale,2015,de\n3,a whale,,en\n")
    notes = cp.index(table, tmp_path / "i", model=None, metadata="year:int,lang:str")
    with notes:
        assert [hit.id for hit in notes.search("whale", where="year >= 2010")] == ["2"]
        assert {hit.id for hit in notes.search("whale", where="year is null or lang = 'en'")} == {"1", "3"}
        assert notes.search("whale", where="year > 3000").hits == ()
        assert notes.run({"q": "whale"}, where="not year >= 2010").scores("q").keys() == {"1"}
        with pytest.raises(ConfigError, match="did you mean 'year'"):
            notes.search("whale", where="yaer = 1")
        assert notes.search("whale", where="lang = 'de'")[0].metadata == {"year": 2015, "lang": "de"}
