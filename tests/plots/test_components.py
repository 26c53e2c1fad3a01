"""Every component is drawn, in one scale for all versions."""

import numpy as np
import pytest

from counterpoint.errors import ConfigError
from counterpoint.plots.components import components_plot


def test_every_vector_in_units_of_its_own_size():
    rng = np.random.default_rng(0)
    before = {name: 100 * rng.normal(size=12) for name in ("query", "relevant document", "other document")}
    after = {"query": rng.normal(size=12)}
    axes = components_plot({"as encoded": before, "whitened": after}, "a title").axes
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == [*(f"{name}\nas encoded" for name in before), "query\nwhitened"]
    drawn = [[line[1][1] - line[0][1] for line in part.get_segments()] for part in axes.collections]
    for found, values in zip(drawn, [*before.values(), *after.values()], strict=True):
        np.testing.assert_allclose(found, values / np.sqrt(np.mean(values**2)), rtol=1e-9)
    largest = max(np.abs(values).max() for values in drawn)
    assert f"{largest:.1f} times" in axes.get_xlabel() and axes.get_title() == "a title"


def test_what_cannot_be_drawn():
    with pytest.raises(ConfigError, match="unknown vector 'passage'; expected query"):
        components_plot({"as encoded": {"passage": np.ones(3)}})
    with pytest.raises(ConfigError, match="no vector to draw"):
        components_plot({"as encoded": {}})
