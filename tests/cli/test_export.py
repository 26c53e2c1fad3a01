"""`counterpoint export` and reading it back; exports that somebody tampered with end in a clear error."""

import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from tests.cli.commands import fails
from tests.cli.hostile import survives

import counterpoint as cp
from counterpoint.files import sha256_file
from counterpoint.index import Index
from counterpoint.types import Document

DOCUMENTS = [
    Document("fox", "The quick brown fox.", metadata={"year": 2001}),
    Document("whale", "A whale lives in the sea.", "Whales", metadata={"year": 1999}),
    Document("long#1", "Trains to the coast.", parent="long"),
    Document("long#2", "They leave at nine.", parent="long", start=21),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory, tiny_bert_folder):
    """An index `i` and its export `e` with vectors."""
    home = tmp_path_factory.mktemp("export")
    with cp.index(DOCUMENTS, home / "i", model=tiny_bert_folder, metadata="year:int") as notes:
        notes.export(home / "e", vectors=True)
    return home


@pytest.fixture
def export(made, tmp_path):
    """A copy of the export, next to the original, since it names the model by a relative path."""
    shutil.copytree(made / "e", made / tmp_path.name)
    yield made / tmp_path.name
    shutil.rmtree(made / tmp_path.name)


def test_an_index_goes_out_and_comes_back(made, call, tmp_path):
    code, out, err = call("export", made / "i", "-o", tmp_path / "e", "--vectors", "--json")
    result = json.loads(out)
    assert code == 0 and err == ""
    assert (result["index"], result["folder"]) == (str(made / "i"), str(tmp_path / "e"))
    assert (result["documents"], result["passages"], result["vectors"]) == (3, 4, True)
    assert result["bytes"] == sum(p.stat().st_size for p in (tmp_path / "e").rglob("*") if p.is_file())
    code, out, _ = call("index", tmp_path / "e", "-o", tmp_path / "j", "--json")
    told = json.loads(out)
    assert code == 0 and (told["documents"], told["passages"]) == (3, 4)
    found = [
        json.loads(call("search", home, "whale", "--json")[1])["hits"]
        for home in (made / "i", tmp_path / "j")
    ]
    assert found[0] == found[1]
    with Index(made / "i") as one, Index(tmp_path / "j") as other:
        kept = [sorted(entry.sha256 for entry in index.manifest.files.values()) for index in (one, other)]
        assert kept[0] == kept[1]


def test_people_are_told_what_was_written(made, call, tmp_path):
    code, out, _ = call("export", made / "i", "-o", tmp_path / "e", "--where", "year > 2000")
    assert code == 0 and out.startswith("1 document, ")
    assert f"counterpoint index {tmp_path / 'e'} -o INDEX" in out
    code, out, _ = call("export", made / "i", "-o", tmp_path / "e", "--overwrite")
    assert code == 0 and out.startswith("3 documents in 4 passages, ")


def test_an_export_of_no_document_says_why(made, call, tmp_path):
    code, out, _ = call("export", made / "i", "-o", tmp_path / "e", "--where", "year > 3000")
    assert code == 0 and out == "0 documents, 0.0 MiB\nNo document meets the condition of --where.\n"
    shutil.copytree(made / "i", tmp_path / "i")
    assert call("delete", tmp_path / "i", "fox", "whale", "long")[0] == 0
    assert call("export", tmp_path / "i", "-o", tmp_path / "none")[1].endswith("\nThe index is empty.\n")


def test_what_cannot_be_exported_is_refused(made, lexical, call, tmp_path):
    assert fails(call("export", tmp_path / "none", "-o", tmp_path / "e"), "no such folder")
    assert fails(call("export", lexical, "-o", tmp_path / "e", "--vectors"), "only BM25")
    assert fails(call("export", made / "i", "-o", made / "i" / "e"), "within the index")
    assert fails(call("export", made / "i", "-o", made / "e"), "already exists")
    assert fails(call("export", made / "i", "-o", tmp_path / "e", "--where", "colour = 'red'"), "colour")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    assert fails(call("export", made / "i", "-o", tmp_path / "full", "--overwrite"), "'notes.txt'")
    assert call("export", made / "i")[0] == 2
    assert not (tmp_path / "e").exists()


def test_few_bits_are_told_of(made, export, call, tmp_path):
    edit(export, lambda about: [one.update(codec="1-bit") for one in about["sets"].values()])
    code, _, err = call("index", export, "-o", tmp_path / "j")
    assert code == 0 and "were stored in 1-bit; documents are encoded again" in err
    code, _, err = call("index", export, "-o", tmp_path / "j", "--vectors", "--overwrite")
    assert code == 0 and "were stored in 1-bit" in err and "again" not in err
    code, _, err = call("index", export, "-o", tmp_path / "j", "--no-vectors", "--overwrite")
    assert code == 0 and "1-bit" not in err


# -- exports that were tampered with -----------------------------------------------------------------------


def edit(folder, change):
    path = folder / "export.json"
    about = json.loads(path.read_text())
    change(about)
    path.write_text(json.dumps(about))


def put(*keys, value):
    def change(about):
        for key in keys[:-1]:
            about = about[key]
        about[keys[-1]] = value

    return lambda folder: edit(folder, change)


def drop(*keys):
    def change(about):
        for key in keys[:-1]:
            about = about[key]
        del about[keys[-1]]

    return lambda folder: edit(folder, change)


def arrays(name, change):
    """Change an array of the first file, and its checksum with it."""

    def tamper(folder):
        path = folder / "vectors" / "00001.safetensors"
        found = load_file(path)
        found[name] = change(found[name])
        save_file(found, path)
        put("shards", 0, "sha256", value=sha256_file(path))(folder)

    return tamper


def lines(change):
    def tamper(folder):
        path = folder / "corpus.jsonl"
        path.write_text("".join(change(path.read_text().splitlines(keepends=True))))

    return tamper


def remove(name):
    return lambda folder: (folder / name).unlink()


TAMPERED = {
    "no corpus": (remove("corpus.jsonl"), "corpus.jsonl"),
    "no shard": (remove("vectors/00001.safetensors"), "00001.safetensors: missing"),
    "shard cut short": (lambda folder: cut(folder / "vectors" / "00001.safetensors"), "match the checksum"),
    "description cut short": (lambda folder: cut(folder / "export.json"), "not valid JSON"),
    "no object": (lambda folder: (folder / "export.json").write_text("[]"), "not a Counterpoint export"),
    "deep": (lambda folder: (folder / "export.json").write_text("[" * 10**5), "not valid JSON"),
    "not UTF-8": (lambda folder: (folder / "export.json").write_bytes(b"\xff\xfe{}"), "not valid JSON"),
    "format": (put("format", value="another"), "not a Counterpoint export"),
    "version": (put("version", value=2), "export format 2, this version of counterpoint reads 1"),
    "version of another type": (put("version", value=True), "export format True"),
    "missing": (drop("settings"), "'settings' is missing"),
    "unknown": (put("surprise", value=1), "'surprise' is unknown"),
    "no codec": (drop("settings", "codec"), "'codec' is missing"),
    "codec": (put("settings", "codec", value="3-bit"), "'codec' cannot be '3-bit'"),
    "lexical": (put("settings", "lexical", value={"k1": "much"}), "'k1' cannot be 'much'"),
    "k1": (put("settings", "lexical", "k1", value=-1.0), "k1 must be at least 0"),
    "analyzer": (put("settings", "lexical", "analyzer", value="klingon"), "klingon"),
    "huge k1": (put("settings", "lexical", "k1", value=10**400), "'k1' cannot be 1000"),
    "search": (put("settings", "search", value={"weights": {"lexical": "x"}}), "search.weights"),
    "unknown search": (put("settings", "search", value={"surprise": 1}), "surprise"),
    "sets": (put("settings", "sets", value=["nothing"]), "'nothing'"),
    "gate": (put("settings", "gate", value=0.5), "no gate and no router"),
    "metadata": (put("settings", "metadata", value={"year": "date"}), "'year' cannot be 'date'"),
    "many fields": (put("settings", "metadata", value={f"f{i}": "int" for i in range(99)}), "more than 64"),
    "passage_words": (put("settings", "passage_words", value="many"), "'passage_words' cannot be 'many'"),
    "fingerprint": (put("model", "fingerprint", value="0" * 64), "exported from an index of the model 0000"),
    "no fingerprint": (put("model", "fingerprint", value=None), "'fingerprint' cannot be None"),
    "model": (put("model", "name", value="./gone"), "gone"),
    "no model": (put("model", "name", value=None), "does not record where its model is"),
    "dim": (put("sets", "mean", "dim", value=0), "a dim from 1"),
    "huge dim": (put("sets", "mean", "dim", value=10**12), "a dim from 1"),
    "another dim": (put("sets", "mean", "dim", value=7), "'mean' does not match its model"),
    "name of a set": (put("sets", value={"../x": {}}), "'dim' is missing"),
    "a set less": (drop("sets", "mean"), "sets: none, but there are shards with vectors"),
    "documents": (put("shards", 0, "documents", value=3), "shape"),
    "no documents": (put("shards", 0, "documents", value=0), "expected 1 to 2**32 - 1 documents"),
    "huge documents": (
        put("shards", 0, "documents", value=2**63),
        "'documents' cannot be 922337",
    ),
    "many documents": (put("shards", 0, "documents", value=2**31), "shape"),
    "checksum": (put("shards", 0, "sha256", value="0"), "does not match the checksum"),
    "no shards": (put("shards", value=[]), "vectors of 0 documents"),
    "passages": (put("passages", value=5), "has 4 documents and passages, export.json says 5"),
    "shape": (arrays("mean.values", lambda x: x[:, 1:].copy()), "'mean' has values of shape"),
    "NaN": (arrays("mean.values", lambda x: x + float("nan")), "of 'fox' in 'mean' is NaN or infinite"),
    "too large": (arrays("mean.values", lambda x: x + 1e38), "too large for int8"),
    "documents of vectors": (arrays("documents", lambda x: x[::-1].copy()), "not those of 'fox'"),
    "duplicate": (lines(lambda found: [found[0], *found]), "duplicate id 'fox'"),
    "no line": (lines(lambda found: []), "has 0 documents and passages"),
    "another text": (lines(lambda found: [found[0].replace("fox.", "cat."), *found[1:]]), "those of 'fox'"),
    "metadata of another type": (
        lines(lambda found: [f.replace("2001", '"x"') for f in found]),
        "not of type int",
    ),
    "huge start": (lines(lambda found: [f.replace("21}", "9" * 30 + "}") for f in found]), "'start' must be"),
}


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize("case", TAMPERED)
def test_a_tampered_export_is_refused_and_nothing_is_written(export, call, tmp_path, case):
    tamper, message = TAMPERED[case]
    tamper(export)
    assert fails(call("index", export, "-o", tmp_path / "j"), message)
    assert not (tmp_path / "j").exists()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@FEW
@given(data=st.data())
def test_any_value_anywhere_in_the_description_ends_well(export, tmp_path, capsys, data):
    whole = (export / "export.json").read_text()
    about = json.loads(whole)
    places = [(about, key) for key in about] + [
        (about[name], key) for name in ("settings", "model", "sets", "report") for key in about[name]
    ]
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = data.draw(JSON)
    (export / "export.json").write_text(json.dumps(about))
    try:
        survives(capsys, "index", export, "-o", tmp_path / "j", "--overwrite")
    finally:
        (export / "export.json").write_text(whole)


# -- to a search engine -------------------------------------------------------------------------------------


def test_an_index_goes_to_an_engine(made, call, tmp_path):
    pytest.importorskip("qdrant_client")
    code, out, err = call("export", made / "i", "--to", "qdrant", "-o", tmp_path / "q", "--name", "notes")
    assert code == 0 and err == ""
    assert out.startswith("qdrant notes: 4 documents written, 0 unchanged\n")
    assert "stored here as int8, written as the float32" in out
    result = json.loads(call("export", made / "i", "--to", "qdrant", "-o", tmp_path / "q", "--json")[1])
    assert (result["collection"], result["written"], result["unchanged"]) == ("i", 4, 0)
    result = json.loads(
        call("export", made / "i", "--to", "qdrant", "-o", tmp_path / "q", "--name", "notes", "--json")[1]
    )
    assert (result["written"], result["unchanged"]) == (0, 4)


def test_options_of_engines_are_checked(made, call, tmp_path):
    assert fails(call("export", made / "i", "--to", "sqlite", "-o", tmp_path / "q"), "choose qdrant, lancedb")
    assert fails(call("export", made / "i", "--to", "qdrant"), "--url http://HOST:6333, or -o FOLDER")
    assert fails(call("export", made / "i", "--url", "http://x", "-o", tmp_path / "q"), "with --to")
    assert fails(call("export", made / "i", "--to", "qdrant", "--vectors"), "leave --vectors and --where out")
    assert fails(
        call("export", made / "i", "--to", "qdrant", "-o", tmp_path / "q", "--name", "a b"), "found 'a b'"
    )
