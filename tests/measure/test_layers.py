"""Layers are measured one by one, whatever the batches; differences are those of logarithms."""

import math

import numpy as np
import pytest

from counterpoint.measure.alignment import mean_cosine
from counterpoint.measure.inter_iso import inter_iso
from counterpoint.measure.isotropy import partition_isotropy
from counterpoint.measure.layers import LayerIsotropy, layer_isotropy, log_differences
from counterpoint.types import Ragged

rng = np.random.default_rng(0)
QUERIES = [[rng.normal(size=(n, 4)) + layer for n in (3, 2, 5)] for layer in range(2)]
DOCUMENTS = [[rng.normal(size=(n, 4)) + 0.5 for n in (6, 4)] for layer in range(2)]


def batches(layers, order):
    for positions in order:
        yield positions, [Ragged.from_list([texts[at] for at in positions], dim=4) for texts in layers]


def test_every_layer_of_both_sides():
    found = layer_isotropy(batches(QUERIES, [[2], [1, 0]]), batches(DOCUMENTS, [[1, 0]]), [(0, 1), (2, 0)])
    assert [layer.layer for layer in found] == [0, 1]
    for layer, queries, documents in zip(found, QUERIES, DOCUMENTS, strict=True):
        assert layer.query.cosine == pytest.approx(mean_cosine(np.concatenate(queries)))
        means = partition_isotropy(queries[2]), partition_isotropy(np.concatenate(queries[:2]))
        assert layer.query.partition == pytest.approx(np.mean(means))
        assert layer.document.rows == 10
        own = [inter_iso(queries[0], documents[1]), inter_iso(queries[2], documents[0])]
        assert layer.inter_iso == pytest.approx(np.mean(own))
        others = [(0, 0), (1, 0), (1, 1), (2, 1)]
        loops = np.mean([inter_iso(queries[q], documents[d]) for q, d in others])
        assert layer.other_inter_iso == pytest.approx(loops)
    assert found[0].to_dict()["query"]["rows"] == 10


def test_backbones_of_different_depth_are_not_compared():
    found = layer_isotropy(batches(QUERIES, [[0, 1, 2]]), batches(DOCUMENTS[:1], [[0, 1]]), [(0, 0)])
    assert found[1].document is None and found[1].query is not None
    assert [layer.inter_iso for layer in found] == [None, None]


def test_differences_of_logarithms():
    def layers(*values):
        return [LayerIsotropy(at, None, None, value, None) for at, value in enumerate(values)]

    found = log_differences(layers(0.4, 0.3, -0.1, None, 0.2), layers(0.2, 0.6, 0.1, 0.1))
    assert found == [pytest.approx(math.log(2)), pytest.approx(-math.log(2)), None, None]
