import shutil
from itertools import islice

import numpy as np
import pytest
import torch
from torch.nn import functional

from counterpoint.data import open_collection
from counterpoint.encode import (
    DualEncoder,
    Encoder,
    Gate,
    Linear,
    Mean,
    TextInput,
    Transformer,
    WholeWords,
    load_encoder,
)
from counterpoint.errors import ArtifactError, ConfigError, NotFittedError
from counterpoint.index import Index, LexicalSettings, build_index
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.score import Dot, MaxSim
from counterpoint.search import Searcher, SearchSettings
from counterpoint.transform import Normalise, Whitening
from counterpoint.types import Document
from counterpoint.vectors import Vectors

TEXTS = ["the cat sat on the mat", "", "red dogs run, blue dogs sit", "what is the house"]


@pytest.fixture
def encoder(tiny_bert_folder):
    heads = {"mean": Mean(normalise=True), "words": WholeWords()}
    return DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), heads)).setup().eval()


@pytest.mark.filterwarnings("ignore:Whitening")
def whitened(encoder):
    rows = encoder.encode_document(TEXTS)["words"].values
    return Whitening(16, rank=4, normalise=True).fit([rows])


@pytest.mark.filterwarnings("ignore:Whitening")
def test_transforms_apply_to_rows_on_both_sides(encoder):
    model = Model(encoder, {"words": [whitened(encoder)]}).setup()
    assert {name: (s.dim, s.pooled, s.ids) for name, s in model.sets.items()} == {
        "mean": (16, True, False),
        "words": (4, False, True),
    }
    for encode, plain in (
        (model.encode_document, encoder.encode_document),
        (model.encode_query, encoder.encode_query),
    ):
        made, raw = encode(TEXTS)["words"], plain(TEXTS)["words"]
        np.testing.assert_array_equal(made.offsets, raw.offsets)
        np.testing.assert_array_equal(made.ids, raw.ids)
        whitening = model.transforms["words"][0]
        wanted = (raw.values - whitening.mean_.numpy()) @ whitening.matrix_.numpy()
        wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
        np.testing.assert_allclose(made.values, wanted, atol=1e-5)
        np.testing.assert_allclose(encode(TEXTS)["mean"].values, plain(TEXTS)["mean"].values, atol=1e-6)


def test_a_transform_that_is_in_no_list_is_refused(encoder):
    with pytest.raises(ConfigError, match=r"transforms\['mean'\] is a Whitening; give a list of transforms"):
        Model(encoder, {"mean": Whitening(4)})


@pytest.mark.filterwarnings("ignore:Whitening")
def test_a_model_is_saved_and_loaded_with_how_it_wants_to_be_searched(encoder, tmp_path):
    search = {"weights": {"lexical": 1.0, "words": 2.0}, "idf": {"words": 0.5}}
    model = Model(encoder, {"words": [whitened(encoder), Normalise()]}, search, "int4")
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.to_dict() == model.to_dict() and again.fingerprint() == model.fingerprint()
    for name, packed in model.encode_document(TEXTS).items():
        np.testing.assert_array_equal(again.encode_document(TEXTS)[name].values, packed.values)
    settings = again.index_settings("here")
    assert (settings.codec, settings.model, settings.search) == ("int4", "here", search)
    no_lexical = again.index_settings(lexical=None, codec="int8")
    assert no_lexical.search == {**search, "weights": {"words": 2.0}} and no_lexical.codec == "int8"
    assert again.index_settings(lexical=LexicalSettings(k1=2.0)).lexical == LexicalSettings(k1=2.0)
    assert (
        settings.lexical == LexicalSettings() and Model(encoder).index_settings().lexical == LexicalSettings()
    )


def test_a_model_says_how_bm25_beside_it_cuts_texts(encoder, tmp_path):
    plain, long = Model(encoder), Model(encoder, analyzer="english-long")
    assert long.fingerprint() == plain.fingerprint()  # its vectors are the same
    long.save(tmp_path / "model")
    again = load_model(tmp_path / "model").index_settings()
    assert again.lexical == LexicalSettings(analyzer="english-long")
    with pytest.raises(ConfigError, match="unknown analyzer 'latin'"):
        Model(encoder, analyzer="latin")


def test_sets_that_an_index_does_not_keep_do_not_match_in_it(encoder):
    model = Model(encoder, search={"weights": {"mean": 1.0}, "exact": ["words"], "floor": []}).setup()
    assert model.index_settings().search["exact"] == ["words"]
    assert model.index_settings(sets=("mean",)).search == {"weights": {"mean": 1.0}, "exact": [], "floor": []}


def test_search_settings_without_weights_weigh_all_parts_alike(encoder, tmp_path):
    model = Model(encoder, search={"exact": ["words"]}).setup()
    settings = model.index_settings(codec="float32")
    assert settings.search == {"exact": ["words"]}
    build_index([Document("a", TEXTS[0])], model, tmp_path / "i", settings)
    with Index(tmp_path / "i") as index:
        assert SearchSettings.for_index(index).weights == {"mean": 1.0, "words": 1.0, "lexical": 1.0}
        assert Searcher(index, model).search(TEXTS[0], 1).hits[0].document.id == "a"


UNUSUAL = [*TEXTS, "", "  \n", "中文 กา", "x" * 3000, "a a a", "...", "\u200b"]


@pytest.mark.parametrize("bits", [32, 4])
@pytest.mark.parametrize("way", ["exact", "floor"])
def test_a_gated_model_scores_in_an_index_as_in_training_and_explains_it(
    tiny_bert_folder, tmp_path, bits, way
):
    """Uni-ColBERTer over texts without words, words longer than the window, other scripts, and collisions."""
    torch.manual_seed(5)
    heads = {"mean": Mean(), "words": WholeWords(hash_bits=bits)}
    encoder = Encoder(Transformer(str(tiny_bert_folder)), heads, TextInput(20), TextInput(20))
    gates, shared = {"words": Gate()}, {"words": Linear(1)}
    search = {"weights": {"mean": 0.3, "words": 0.7}, "scale": "none", way: ["words"]}
    model = Model(DualEncoder(encoder, gates=gates, shared=shared), search=search).setup().eval()
    with torch.no_grad():
        model.encoder.gates["words"].linear_.weight.normal_(0, 2)
    documents = [Document(str(i), text) for i, text in enumerate(UNUSUAL)]
    build_index(documents, model, tmp_path / "i", model.index_settings(codec="float32"))
    encoded = [{k: Vectors.pad(v) for k, v in model.encode_document([d.text]).items()} for d in documents]
    scorer = 0.3 * Dot("mean") + 0.7 * MaxSim("words", exact=way == "exact", floor0=True)
    dropped = matched = 0
    with Index(tmp_path / "i") as index:
        for query in filter(str.strip, UNUSUAL):
            asked = {name: Vectors.pad(packed) for name, packed in model.encode_query([query]).items()}
            hits = Searcher(index, model).search(query, 99, explain=True).hits
            assert len(hits) == len(documents)
            for hit in hits:
                wanted = scorer(asked, encoded[int(hit.document.id)]).item()
                assert hit.score == pytest.approx(wanted, rel=1e-3, abs=1e-3)
                leaves = list(hit.explanation.leaves())
                assert sum(leaf.score for leaf in leaves) == pytest.approx(hit.score, rel=1e-4, abs=1e-4)
                dropped += sum(word.importance is None for word in hit.words["words"])
                matched += sum(leaf.document is not None for leaf in leaves)
                kept = sum(word.importance is not None for word in hit.words["words"])
                assert kept == encoded[int(hit.document.id)]["words"].mask.sum()
    assert dropped and matched


@pytest.mark.filterwarnings("ignore:Whitening")
def test_maps_are_appended_and_left_out_until_they_are_fitted(encoder):
    model, plain = Model(encoder).setup(), encoder.encode_document(TEXTS)["words"].values
    before = model.fingerprint()
    assert model.has_unit_length("mean") and not model.has_unit_length("words")
    model.append("words", Whitening(16, rank=4)).append("words", Normalise()).setup()
    assert model.fingerprint() != before and model.has_unit_length("words")
    with pytest.raises(NotFittedError):
        model.encode_document(TEXTS)
    model.leave_out({"words"})
    assert model.sets["words"].dim == 16 and model.has_unit_length("words")  # a Normalise learns nothing
    lengths = np.linalg.norm(plain, axis=1, keepdims=True)
    found = model.encode_document(TEXTS)["words"].values
    np.testing.assert_allclose(found, plain / lengths, rtol=1e-5, atol=1e-6)
    tokens = encoder.query.tokens(TEXTS, "query")
    trained = functional.normalize(encoder(tokens)["words"].values, dim=-1)
    assert torch.allclose(model(tokens)["words"].values, trained, atol=1e-6)
    model.leave_out()
    model.steps("words")[0].fit([plain])
    assert model.sets["words"].dim == 4
    np.testing.assert_allclose(
        np.linalg.norm(model.encode_query(TEXTS)["words"].values, axis=1), 1, rtol=1e-5
    )


def test_how_a_model_is_searched_is_not_what_it_computes(encoder):
    assert (
        Model(encoder).fingerprint() == Model(encoder, None, {"weights": {"mean": 1.0}}, "int4").fingerprint()
    )


def test_a_transform_on_a_set_that_is_not_there_is_refused(encoder):
    with pytest.raises(ConfigError, match="transform on 'tokens', but the encoder has mean, words"):
        Model(encoder, {"tokens": [Normalise()]}).setup()


def test_an_encoder_is_a_model_too_and_other_parts_are_not(encoder, tmp_path):
    encoder.save(tmp_path / "encoder")
    loaded = load_model(tmp_path / "encoder")
    assert isinstance(loaded, Model) and set(loaded.sets) == {"mean", "words"}
    Normalise().save(tmp_path / "normalise")
    with pytest.raises(ArtifactError, match="a Normalise, not a model"):
        load_model(tmp_path / "normalise")
    assert isinstance(Part.load(tmp_path / "normalise"), Normalise)


def test_foreign_pooled_vectors_are_compared_by_cosine_unless_their_settings_say_dot(
    tiny_bert_folder, tmp_path
):
    raw = load_encoder(tiny_bert_folder).encode_document(TEXTS)["mean"].values
    lengths = np.linalg.norm(raw, axis=1)
    assert np.abs(lengths - 1).max() > 0.1  # otherwise there is nothing to see
    made = load_model(tiny_bert_folder).encode_document(TEXTS)["mean"].values
    np.testing.assert_allclose(made, raw / lengths[:, None], atol=1e-5)
    folder = tmp_path / "dot"
    shutil.copytree(tiny_bert_folder, folder)
    (folder / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "dot"}')
    np.testing.assert_allclose(load_model(folder).encode_document(TEXTS)["mean"].values, raw, atol=1e-5)


@pytest.mark.minilm
@pytest.mark.shared
def test_the_shipped_map_whitens_words_that_it_was_not_fitted_on(shared, default_model):
    collection = open_collection(shared / "data" / "cranfield")
    texts = [document.full_text for document in islice(collection.documents(), 100)]
    model = default_model
    raw = model.encoder.encode_document(texts)["words"].values
    whitening = model.transforms["words"][0]
    made = (raw - whitening.mean_.numpy()) @ whitening.matrix_.numpy()

    def isotropy(rows):  # IsoScore by the participation ratio: 1 for a ball, 0 for a line
        spread = np.linalg.eigvalsh(np.cov(rows.T))
        return (spread.sum() ** 2 / (spread**2).sum() - 1) / (len(spread) - 1)

    assert model.sets["words"].dim == 376 == whitening.kept
    assert isotropy(made) > 1.25 * isotropy(raw)
