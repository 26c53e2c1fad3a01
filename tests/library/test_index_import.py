"""What is built of an export is the index that it was made from, unless something else is asked for."""

import json
import shutil
import warnings

import pytest
import torch
from tests.fakes import HashModel, UniModel
from tests.library.exports import (
    DOCUMENTS,
    MODELS,
    answers,
    built,
    documents_of,
    held,
    without_encoding,
)
from tests.library.test_library import made

import counterpoint as cp
from counterpoint.encode import DualEncoder, Encoder, Gate, Linear, Transformer, WholeWords
from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.index import IndexSettings, LexicalSettings, keep_search, vector_shards
from counterpoint.index.codec import CODECS, Bits
from counterpoint.model import Model
from counterpoint.transform import Normalise
from counterpoint.types import Document

__all__ = ["made"]

WHOLE = [name for name, codec in CODECS.items() if not isinstance(codec, Bits)]


@pytest.fixture
def gated(tiny_bert_folder):
    """A model that weighs rows, and can drop some."""
    torch.manual_seed(4)
    encoder = Encoder(Transformer(str(tiny_bert_folder)), {"words": WholeWords(projection=Linear(4))})
    return Model(DualEncoder(encoder, gates={"words": Gate()}), search={"weights": {"words": 1.0}}).setup()


class AnotherModel(HashModel):
    def __init__(self):
        super().__init__(seed=1)

    def index_settings(self, name=None, **changes):
        return IndexSettings(model=name, **changes)


def exported(notes, folder, **options):
    notes.export(folder, **options)
    return folder


# -- the same index ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", WHOLE)
@pytest.mark.parametrize("model", MODELS)
def test_with_vectors_every_file_is_the_same_and_nothing_is_encoded(tmp_path, monkeypatch, model, codec):
    monkeypatch.setattr(vector_shards, "BYTES", 2**16)
    encoder = MODELS[model]()
    search = {"exact": ["words"]} if model == "uni" else None
    notes = built(tmp_path / "i", encoder, codec=codec, search=search)
    exported(notes, tmp_path / "e", vectors=True)
    with without_encoding(encoder):
        again = cp.index(tmp_path / "e", tmp_path / "j", model=encoder)
    assert held(again) == held(notes)
    assert again.index.manifest.settings == notes.index.manifest.settings
    assert again.index.manifest.report == notes.index.manifest.report
    assert documents_of(again) == DOCUMENTS
    assert answers(again) == answers(notes)


@pytest.mark.parametrize("codec", ["int8", "1-bit"])
@pytest.mark.parametrize("vectors", [False, True])
def test_without_vectors_or_with_few_bits_documents_are_encoded_to_the_same_files(tmp_path, codec, vectors):
    encoder = UniModel(16)
    notes = built(tmp_path / "i", encoder, codec=codec)
    exported(notes, tmp_path / "e", vectors=vectors)
    told = "were stored in 1-bit; documents are encoded again"
    if vectors and codec == "1-bit":
        with pytest.warns(UserWarning, match=told):
            again = cp.index(tmp_path / "e", tmp_path / "j", model=encoder)
    else:
        again = cp.index(tmp_path / "e", tmp_path / "j", model=encoder)
    assert held(again) == held(notes) and answers(again) == answers(notes)
    assert again.index.manifest.settings == notes.index.manifest.settings


def test_vectors_of_few_bits_are_coded_again_if_asked(tmp_path):
    encoder = UniModel(16)
    notes = built(tmp_path / "i", encoder, codec="1-bit")
    exported(notes, tmp_path / "e", vectors=True)
    with without_encoding(encoder), pytest.warns(UserWarning, match="were stored in 1-bit"):
        again = cp.index(tmp_path / "e", tmp_path / "j", model=encoder, vectors=True)
    assert again.index.manifest.settings == notes.index.manifest.settings
    assert documents_of(again) == DOCUMENTS
    assert [len(one) for one in answers(again)] == [len(one) for one in answers(notes)]


def test_several_segments_and_deleted_documents_become_one_segment_that_scores_alike(tmp_path):
    encoder = HashModel()
    notes = built(tmp_path / "i", encoder, DOCUMENTS[:300])
    notes.add([{"id": "new", "text": "a new fox in box17", "year": 5}])
    notes.delete(["a", "n7", " e"])
    notes.update([{"id": "n9", "text": "brown turtle2 box17"}])
    exported(notes, tmp_path / "e", vectors=True)
    with without_encoding(encoder):
        again = cp.index(tmp_path / "e", tmp_path / "j", model=encoder)
    assert len(again.index.segments) == 1 and again.index.end == len(notes)
    assert documents_of(again) == documents_of(notes)
    assert answers(again, ("lexical", "words")) == answers(notes, ("lexical", "words"))
    assert [[hit[0] for hit in one] for one in answers(again)] == [
        [hit[0] for hit in one] for one in answers(notes)
    ]


def test_an_interrupted_import_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("counterpoint.index.progress.EVERY", 0)
    monkeypatch.setattr(vector_shards, "BYTES", 2**16)
    encoder = HashModel()
    notes = built(tmp_path / "i", encoder)
    exported(notes, tmp_path / "e", vectors=True)

    def stop(done):
        if done > 512:
            raise KeyboardInterrupt

    with without_encoding(encoder):
        with pytest.raises(KeyboardInterrupt):
            cp.index(tmp_path / "e", tmp_path / "j", model=encoder, on_progress=stop)
        again = cp.index(tmp_path / "e", tmp_path / "j", model=encoder, resume=True)
    assert held(again) == held(notes)


def test_passages_are_not_cut_again(tmp_path, call):
    text = " ".join(f"Sentence {i} is about cats." for i in range(40))
    with cp.index(
        [Document("d", text), Document("s", "Short.")], tmp_path / "i", model=None, passage_words=20
    ) as notes:
        exported(notes, tmp_path / "e")
        assert len(notes) > 5
        with cp.index(tmp_path / "e", tmp_path / "j") as again:
            assert held(again) == held(notes) and documents_of(again) == documents_of(notes)
            assert again.index.manifest.settings["passage_words"] == 20
            again.add([Document("more", text)])  # what is added is cut as before
            assert len(again) == 2 * len(notes) - 1
        with cp.index(tmp_path / "e", tmp_path / "k", passage_words=5) as finer:
            assert documents_of(finer) == documents_of(notes)
    with cp.index(["Other."], tmp_path / "l", model=None, passage_words=10) as other:
        other.add(tmp_path / "e")
        assert documents_of(other)[1:] == documents_of(notes := cp.open(tmp_path / "i"))
        notes.close()


def test_settings_that_the_index_was_given_later_are_kept(tmp_path):
    encoder = HashModel()
    notes = built(tmp_path / "i", encoder)
    keep_search(tmp_path / "i", {"weights": {"mean": 2.0, "lexical": 0.5}})
    notes.refresh()
    exported(notes, tmp_path / "e")
    again = cp.index(tmp_path / "e", tmp_path / "j", model=encoder)
    assert again.index.manifest.settings == notes.index.manifest.settings
    assert answers(again) == answers(notes)


# -- the model ---------------------------------------------------------------------------------------------


def test_a_model_that_only_the_index_has_goes_with_it(made, tmp_path):
    """Made in Python: the export has a copy, and so has the index that is built of it."""
    notes = cp.index(DOCUMENTS[:9], tmp_path / "i", model=made, metadata="year:int")
    before, files = answers(notes, ("hybrid", "dense")), held(notes)
    exported(notes, tmp_path / "e", vectors=True)
    notes.close()
    shutil.rmtree(tmp_path / "i")
    again = cp.index(tmp_path / "e", tmp_path / "j")
    assert held(again) == files
    again.close()
    shutil.rmtree(tmp_path / "e")
    (tmp_path / "j").rename(tmp_path / "k")
    with cp.open(tmp_path / "k") as moved:
        assert answers(moved, ("hybrid", "dense")) == before


def test_a_models_folder_is_found_from_the_export(tiny_bert_folder, tmp_path):
    shutil.copytree(tiny_bert_folder, tmp_path / "home" / "model")
    notes = cp.index(DOCUMENTS[:9], tmp_path / "home" / "i", model=tmp_path / "home" / "model")
    exported(notes, tmp_path / "home" / "e", vectors=True)
    expected = held(notes)
    (tmp_path / "home").rename(tmp_path / "moved")
    again = cp.index(tmp_path / "moved" / "e", tmp_path / "j")
    assert held(again) == expected
    assert again.index.manifest.model["name"] == "./../moved/model"


def test_another_model_under_the_same_name_is_refused_and_a_named_one_encodes(made, tmp_path):
    made.save(tmp_path / "model")
    notes = cp.index(DOCUMENTS[:9], tmp_path / "i", model=tmp_path / "model")
    exported(notes, tmp_path / "e", vectors=True)
    shutil.rmtree(tmp_path / "model")
    with pytest.raises(ArtifactError):
        cp.index(tmp_path / "e", tmp_path / "j")
    made.append("tokens", Normalise()).save(tmp_path / "model")
    with pytest.raises(ArtifactError, match="exported from an index of the model .*name the model to encode"):
        cp.index(tmp_path / "e", tmp_path / "j")
    assert not (tmp_path / "j").exists()
    with pytest.warns(UserWarning, match="vectors of the export were made by another model"):
        again = cp.index(tmp_path / "e", tmp_path / "j", model=tmp_path / "model", passage_words=None)
    assert documents_of(again) == DOCUMENTS[:9] and again.index.manifest.model != notes.index.manifest.model


# -- unless something else is asked for --------------------------------------------------------------------


def test_what_is_given_goes_before_what_the_index_had(tmp_path):
    encoder = HashModel()
    notes = built(tmp_path / "i", encoder, DOCUMENTS[:50])
    exported(notes, tmp_path / "e", vectors=True)
    given = {"codec": "float16", "k1": 2.0, "analyzer": "english", "metadata": "year:float,lang:str"}
    with without_encoding(encoder):
        again = cp.index(tmp_path / "e", tmp_path / "j", model=encoder, **given)
    settings = again.index.manifest.settings
    assert settings["codec"] == "float16" and settings["metadata"] == {"year": "float", "lang": "str"}
    assert settings["lexical"] == {"k1": 2.0, "b": 0.3, "analyzer": "english", "identifiers": False}
    assert settings["passage_words"] == 90
    without = cp.index(tmp_path / "e", tmp_path / "k", model=encoder, lexical=False)
    assert without.index.lexical is None
    exported(without, tmp_path / "f")
    with pytest.raises(ConfigError, match="--no-lexical leaves out"):
        cp.index(tmp_path / "f", tmp_path / "l", model=encoder, k1=1.0)
    assert cp.index(tmp_path / "f", tmp_path / "l", model=encoder).index.lexical is None
    with_bm25 = cp.index(tmp_path / "f", tmp_path / "m", model=None, lexical=True, k1=1.0)
    assert with_bm25.index.manifest.settings["lexical"]["k1"] == 1.0 and not with_bm25.index.layouts


def test_vectors_may_be_left_out_or_insisted_on(tmp_path):
    encoder = HashModel()
    notes = built(tmp_path / "i", encoder, DOCUMENTS[:50])
    exported(notes, tmp_path / "e", vectors=True)
    with without_encoding(encoder), pytest.raises(AssertionError, match="50 documents are encoded"):
        cp.index(tmp_path / "e", tmp_path / "j", model=encoder, vectors=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cp.index(tmp_path / "e", tmp_path / "j", model=encoder, vectors=False)
    with pytest.warns(UserWarning, match="--passage-words cuts documents"):
        cut = cp.index(tmp_path / "e", tmp_path / "k", model=encoder, passage_words=4)
    assert len(cut) > 50
    with pytest.raises(ConfigError, match="--vectors: --passage-words cuts documents"):
        cp.index(tmp_path / "e", tmp_path / "l", model=encoder, passage_words=4, vectors=True)
    with pytest.raises(ConfigError, match="--vectors: the vectors of the export were made by another model"):
        cp.index(tmp_path / "e", tmp_path / "l", model=AnotherModel(), vectors=True)
    with pytest.raises(ConfigError, match="--vectors: an index without a model stores none"):
        cp.index(tmp_path / "e", tmp_path / "l", model=None, vectors=True)
    exported(notes, tmp_path / "f")
    with pytest.raises(ConfigError, match="--vectors: .* has none"):
        cp.index(tmp_path / "f", tmp_path / "l", model=encoder, vectors=True)
    with pytest.raises(ConfigError, match="SOURCE is not"):
        cp.index(["a cat"], tmp_path / "l", model=encoder, vectors=True)


def test_a_gate_is_closed_as_it_was(gated, tmp_path):
    gated.save(tmp_path / "model")
    notes = cp.index(DOCUMENTS[:20], tmp_path / "i", model=tmp_path / "model", gate=0.2)
    exported(notes, tmp_path / "e", vectors=True)
    for model in ("auto", tmp_path / "model"):
        again = cp.index(tmp_path / "e", tmp_path / "j", model=model, overwrite=True)
        assert held(again) == held(notes)
        assert again.index.manifest.settings == notes.index.manifest.settings
    with pytest.warns(UserWarning, match="another model"):
        other = cp.index(tmp_path / "e", tmp_path / "k", gate=0.4)
    assert other.index.manifest.settings["gate"] == 0.4
    assert other.search("fox").hits


# -- exports that were changed -----------------------------------------------------------------------------


def test_an_edited_corpus_is_noticed(tmp_path):
    encoder = HashModel()
    notes = built(tmp_path / "i", encoder, DOCUMENTS[:20])
    exported(notes, tmp_path / "e", vectors=True)
    corpus = tmp_path / "e" / "corpus.jsonl"
    lines = corpus.read_text().split("\n")
    for edited, told in [
        ([*lines[:3], lines[3].replace("foxes", "cats"), *lines[4:]], "not those of 'd'"),
        ([lines[1], lines[0], *lines[2:]], "not those of 'b'"),
        (lines[:-2], "has 19 documents and passages, export.json says 20"),
        (
            [*lines[:-1], '{"_id": "new", "text": "new"}', ""],
            "has 21 documents and passages, export.json says 20",
        ),
        ([*lines[:-2], lines[0], ""], "duplicate id 'a', first used at"),
        ([*lines[:-2], "{", ""], "not valid JSON"),
    ]:
        corpus.write_text("\n".join(edited))
        with pytest.raises(DataError, match=told):
            cp.index(tmp_path / "e", tmp_path / "j", model=encoder)
        assert not (tmp_path / "j").exists()
    corpus.write_text("\n".join(lines[:-2]))
    with pytest.raises(DataError, match="has 19 documents and passages, export.json says 20.*--lenient"):
        cp.index(tmp_path / "e", tmp_path / "j", model=encoder, vectors=False)
    assert len(cp.index(tmp_path / "e", tmp_path / "j", model=encoder, vectors=False, lenient=True)) == 19


def test_metadata_may_be_edited_and_the_corpus_packed(tmp_path):
    import gzip

    encoder = HashModel()
    notes = built(tmp_path / "i", encoder, DOCUMENTS[:20])
    exported(notes, tmp_path / "e", vectors=True)
    corpus = tmp_path / "e" / "corpus.jsonl"
    packed = gzip.compress(corpus.read_bytes().replace(b'"year": 1999', b'"year": 2000'))
    corpus.with_suffix(".jsonl.gz").write_bytes(packed)
    corpus.unlink()
    with without_encoding(encoder):
        again = cp.index(tmp_path / "e", tmp_path / "j", model=encoder)
    assert again.index.document(0).metadata["year"] == 2000


def test_a_fingerprint_of_a_model_that_makes_other_sets_is_refused(tmp_path):
    notes = built(tmp_path / "i", HashModel(), DOCUMENTS[:20])
    exported(notes, tmp_path / "e", vectors=True)
    path = tmp_path / "e" / "export.json"
    about = json.loads(path.read_text())
    about["model"]["fingerprint"] = UniModel(8).fingerprint()
    path.write_text(json.dumps(about))
    with pytest.raises(DataError, match="'cls' does not match its model"):
        cp.index(tmp_path / "e", tmp_path / "j", model=UniModel(8))


def test_settings_of_an_earlier_version_may_be_missing(tmp_path):
    notes = built(tmp_path / "i", HashModel(), DOCUMENTS[:20])
    exported(notes, tmp_path / "e")
    path = tmp_path / "e" / "export.json"
    about = json.loads(path.read_text())
    about["settings"] = {"codec": "int8", "lexical": {"k1": 0.5, "b": 0.5, "analyzer": "simple"}}
    path.write_text(json.dumps(about))
    again = cp.index(tmp_path / "e", tmp_path / "j", model=HashModel())
    assert again.index.lexical.settings == LexicalSettings(0.5, 0.5, "simple", identifiers=False)


def test_vectors_of_another_pool_factor_are_encoded_again(tmp_path, made):
    notes = cp.index(DOCUMENTS[:20], tmp_path / "i", model=made, pool_factor=2)
    exported(notes, tmp_path / "e", vectors=True)
    again = cp.index(tmp_path / "e", tmp_path / "j")  # not pooled twice
    lengths = notes.index.sets["tokens"].lengths.tolist()
    assert again.index.sets["tokens"].lengths.tolist() == lengths
    assert again.index.manifest.settings["pool_factor"] == 2
    with pytest.warns(UserWarning, match="--pool-factor 1: the vectors of the export have factor 2"):
        whole = cp.index(tmp_path / "e", tmp_path / "k", pool_factor=1)
    assert whole.index.sets["tokens"].lengths.sum() > sum(lengths)
    with pytest.raises(ConfigError, match="--vectors: --pool-factor 3"):
        cp.index(tmp_path / "e", tmp_path / "l", pool_factor=3, vectors=True)
