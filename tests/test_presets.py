"""Named models other than the default (which has a file of its own)."""

import numpy as np
import pytest

from counterpoint.loading import load_model
from counterpoint.presets import PRESETS
from counterpoint.search import SearchSettings

TEXTS = [
    "No doxycycline is not a sulfa containing compound, so you may take it safely if you are allergic to "
    "sulfa drugs. You should be aware, however, that doxycycline may cause photosensitivity, so you should "
    "wear appropriate clothing, or you may get easily sunburned or develop a rash if you are exposed "
    "to sunlight.",
    "",
    "The cat sat on the mat of the house.",
]


WORD_COMPONENTS = {"colberter": 8, "uni-colberter": 1}


@pytest.fixture(scope="module", params=WORD_COMPONENTS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def colberter(name):
    return load_model(name)


def test_colberter_has_small_vectors_and_drops_words(name, colberter):
    assert {on: found.dim for on, found in colberter.sets.items()} == {
        "mean": 128,
        "words": WORD_COMPONENTS[name],
    }
    made = colberter.encode_document(TEXTS)
    assert made["words"].lengths[1] == 0 and len(made["mean"].values) == 3
    kept = {
        span.text
        for span, number in zip(
            colberter.spans(TEXTS[:1], "words", "document")[0],
            colberter.row_ids(TEXTS[:1], "words", "document")[0].tolist(),
            strict=True,
        )
        if number in made["words"].ids_of(0)
    }
    assert {"doxycycline", "sulfa", "allergic"} <= kept
    assert not {"should", "may"} & kept


def test_colberter_says_how_it_is_searched(colberter):
    settings = SearchSettings.from_dict(colberter.search)
    assert (
        settings.scale == "none" and settings.floors("words") and set(settings.weights) == {"mean", "words"}
    )
    lengths = np.linalg.norm(colberter.encode_query(["sulfa allergy"])["mean"].values, axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-3)


def test_every_preset_can_be_declared():
    assert {"minilm", "minilm-dense", "minilm-tokens", "colberter", "uni-colberter"} == set(PRESETS)
