"""Pictures of a vector set and of a backbone's layers, by file name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterpoint.cli.diagnosis.space import Space
from counterpoint.cli.diagnosis.whitened import Whitened

if TYPE_CHECKING:
    import numpy as np

    from counterpoint.plots import Picture

__all__ = ["layer_pictures", "score_pictures", "space_pictures"]

SCORED = 2000  # pairs of texts whose rows' cosines are drawn
COSINES = 200_000  # cosines drawn at most
LAYERED = (("query", "queries"), ("document", "documents"))


def space_pictures(space: Space, made: Whitened | str) -> Iterator[tuple[str, Picture]]:
    """The PCA plane and the spectrum; the plane and single vectors after whitening.

    Whitened documents are those that whitening was not fitted on.
    """
    from counterpoint.measure.alignment import spectrum
    from counterpoint.plots.pca import pca_plot
    from counterpoint.plots.spectrum import spectrum_plot

    queries, documents = space.rows()
    plane = queries.shape[1] > 1
    if plane:
        yield f"pca-{space.name}", pca_plot(space.groups(), space.name)
    variances = {"queries": spectrum(queries), "documents": spectrum(documents)}
    yield f"spectrum-{space.name}", spectrum_plot(variances, space.name)
    if isinstance(made, Whitened):
        if plane:
            groups = space.source.groups(made.held)
            after = {name: made.apply(rows) for name, rows in groups.items() if len(rows)}
            yield f"pca-{space.name}-whitened", pca_plot(after, f"{space.name}, {made.about()}")
        yield from _components(space, made)


def score_pictures(models: Mapping[str, Mapping[str, Space]]) -> Iterator[tuple[str, Picture]]:
    """Cosines of pairs that belong together and of others, for all sets (HIL, figures 2 and 6).

    Several models on the same sample share the picture.
    """
    from counterpoint.plots.scores import scores_plot

    spaces = _labelled(models)
    together, other = {}, {}
    for name, space in spaces.items():
        together[name], other[name] = _cosines(space)
    if any(map(len, together.values())):
        pairing = next(iter(spaces.values())).sample.pairing()
        yield "scores", scores_plot(together, other, f"pairs: {pairing}; others: at random")


def layer_pictures(found: Mapping[str, Any]) -> Iterator[tuple[str, Picture]]:
    """Isotropy by layer, and the difference from another model's InterIso (HIL, figure 5)."""
    from counterpoint.plots.curves import Curve, curves_plot

    layers: Sequence[Mapping[str, Any]] = found["layers"]

    def curve(name: str, values: Sequence[float | None]) -> list[Curve]:
        points = [(layer["layer"], x) for layer, x in zip(layers, values, strict=True) if x is not None]
        return [Curve(name, *zip(*points, strict=True))] if points else []

    curves = []
    for name, what in (("mean cosine", "cosine"), ("I(W)", "partition")):
        for side, plural in LAYERED:
            curves += curve(f"{name}, {plural}", [layer[side] and layer[side][what] for layer in layers])
    for name, what in (("InterIso, pairs", "inter_iso"), ("InterIso, others", "other_inter_iso")):
        curves += curve(name, [layer[what] for layer in layers])
    yield "layers", curves_plot(curves, value="of hidden states", along="layer")
    against = curve(f"against {found['against']}", [layer.get("log_difference") for layer in layers])
    if against:
        value = "difference of ln InterIso"
        yield "layers-against", curves_plot(against, value=value, along="layer", levels={"equal": 0.0})


def _components(space: Space, made: Whitened) -> Iterator[tuple[str, Picture]]:
    """A query, one of its documents and another one, before and after (Isotropic DR, figure 4).

    A set with many rows per text shows the first row of each. Whitening was not fitted on these documents.
    """
    import numpy as np

    from counterpoint.plots.components import components_plot

    queries, documents = space.queries.lengths > 0, np.zeros(len(space.documents), bool)
    documents[made.held] = space.documents.lengths[made.held] > 0
    pairs = [(q, d) for q, d in space.sample.pairs() if queries[q] and documents[d]]
    if not pairs:
        return
    rng = np.random.default_rng(space.seed)
    query, document = pairs[int(rng.integers(len(pairs)))]
    own = {d for q, d in space.sample.pairs() if q == query}
    rest = [at for at in range(len(documents)) if documents[at] and at not in own]
    other = rest[int(rng.integers(len(rest)))] if rest else None

    def vectors(of: Space) -> dict[str, np.ndarray]:
        found = {"query": of.queries[query][0], "relevant document": of.documents[document][0]}
        return found | ({} if other is None else {"other document": of.documents[other][0]})

    after = {name: made.apply(values[None])[0] for name, values in vectors(space.source).items()}
    versions = {"as encoded": vectors(space), "whitened": after}
    yield f"components-{space.name}", components_plot(versions, f"{space.name}, {made.about()}")


def _labelled(models: Mapping[str, Mapping[str, Space]]) -> dict[str, Space]:
    """The sets that have rows, by their label in a legend; several models are part of the label."""
    last = {model: Path(model).name or model for model in models}
    if len(set(last.values())) < len(last):  # two runs may keep their models in folders of one name
        last = {model: model for model in models}
    return {
        name if len(models) == 1 else f"{last[model]} {name}": space
        for model, spaces in models.items()
        for name, space in spaces.items()
        if space.few() is None
    }


def _cosines(space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Cosines between the rows of pairs that belong together, and of as many pairs that do not."""
    import numpy as np

    rng = np.random.default_rng(space.seed)
    pairs = space.sample.pairs()
    known = set(pairs)
    chosen = [pairs[at] for at in rng.permutation(len(pairs))[:SCORED]]
    drawn = rng.integers([len(space.queries), len(space.documents)], size=(2 * SCORED, 2)).tolist()
    others = [(q, d) for q, d in drawn if (q, d) not in known][:SCORED]
    return _of_pairs(space, chosen, rng), _of_pairs(space, others, rng)


def _of_pairs(space: Space, pairs: Sequence[tuple[int, int]], rng: np.random.Generator) -> np.ndarray:
    import numpy as np

    from counterpoint.measure.rows import unit_rows

    share = max(1, COSINES // max(1, len(pairs)))  # of a pair of long texts, only a sample
    found = [np.zeros(0)]
    for query, document in pairs:
        left, right = (
            unit_rows(np.asarray(rows, np.float64))
            for rows in (space.queries[query], space.documents[document])
        )
        values = (left @ right.T).ravel()
        found.append(values if len(values) <= share else rng.choice(values, share, replace=False))
    return np.concatenate(found)
