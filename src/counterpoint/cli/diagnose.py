"""`counterpoint diagnose`: how a model's vectors lie in space, and how a training went."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.cli.sampling import Sample, encode_texts, sample_of
from counterpoint.cli.tables import text_table
from counterpoint.cli.token_counts import count_collection, counts_text

if TYPE_CHECKING:
    import numpy as np

    from counterpoint.plots import Picture

__all__ = ["diagnose"]

ROWS = 10_000  # vectors a side at most, where a set has many a text
MEASURES = ("cosine", "spread", "rank", "entropy_rank", "first_share")
CURVES = (  # a picture's name, the numbers on it, and its vertical axis
    ("loss", "loss", "loss"),
    ("divergence", "alignment.kl", "KL₁(document side ‖ query side)"),
    ("cosine", "watch.*.cosine", "mean cosine of two texts of a side"),
    ("rank", "watch.*.rank", "effective rank of a side"),
)


def diagnose(
    model: Annotated[
        str | None,
        typer.Argument(
            help="Model: a name, a folder, a hub id, or the folder of a training run.", show_default=False
        ),
    ] = None,
    collection: Annotated[
        str | None,
        typer.Argument(help="Collection to take texts from; may be left out for a run.", show_default=False),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Whose queries; needed where there are several splits and none is test."),
    ] = None,
    on: Annotated[str | None, typer.Option(help="Only this vector set.", show_default=False)] = None,
    sample: Annotated[int, typer.Option(min=10, help="Queries, and documents, at most.")] = 500,
    seed: Annotated[int, typer.Option(help="Decides which ones.")] = 0,
    plots: Annotated[
        Path | None, typer.Option(help="Draw pictures into this folder.", show_default=False)
    ] = None,
    form: Annotated[Literal["png", "svg", "pdf"], typer.Option("--format", help="Of the pictures.")] = "png",
    tokens: Annotated[
        str | None,
        typer.Option(
            help="Count this collection's word-pieces, words and distinct words instead, with MODEL's "
            "tokenizer (minilm's, which is BERT's, unless given).",
            show_default=False,
        ),
    ] = None,
    stem: Annotated[
        Literal["snowball", "porter", "nltk", "lower", "none"],
        typer.Option(help="For --tokens: what makes two words one. ColBERTer's is nltk."),
    ] = "snowball",
    as_json: Json = False,
) -> None:
    """Say how a model's queries and documents lie in space: alignment, spread, collapse; draw them."""
    from counterpoint.errors import ConfigError

    if tokens is not None:
        counted = count_collection(tokens, model or "minilm", stem)
        return emit(counted, lambda: counts_text(counted), as_json)
    if model is None:
        raise ConfigError("name a MODEL or the folder of a run, or count tokens with --tokens COLLECTION")
    metrics = Path(model) / "metrics.jsonl"
    result: dict[str, Any] = {"model": model}
    pictures: dict[str, Picture] = {}
    if metrics.is_file():
        records = _read_metrics(metrics)
        result |= {"stages": _stages(records), "measures": _measures(records)}
        pictures |= _curves(records) if plots is not None else {}
    elif collection is None:
        raise ConfigError(
            f"{model}: not a training run (no metrics.jsonl), so name a COLLECTION to take texts from"
        )
    if collection is not None:
        drawn = sample_of(collection, split, sample, seed)
        sides = _sides(model, drawn, on, seed)
        result |= {"collection": collection, "split": drawn.split}
        result["sets"] = {name: found.numbers() for name, found in sides.items()}
        for name, found in sides.items() if plots is not None else ():
            pictures |= found.pictures(name)
    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)
        for name, picture in pictures.items():
            picture.save(plots / f"{name}.{form}")
        result["pictures"] = [str(plots / f"{name}.{form}") for name in pictures]
    emit(result, lambda: _text(result), as_json)


@dataclass(frozen=True)
class Sides:
    """The rows of one vector set, for the families of measures and the pictures.

    Attributes:
        query: of the queries.
        document: of documents drawn at random.
        other: for each row of `document`, whether its text is relevant to none of the queries.
        relevant: of documents relevant to one.
        crossed: of the queries, encoded as if they were documents.
    """

    query: np.ndarray
    document: np.ndarray
    other: np.ndarray
    relevant: np.ndarray
    crossed: np.ndarray

    def numbers(self) -> dict[str, Any]:
        """Measures of each side, and between them."""
        from counterpoint.measure.alignment import profile

        return {
            "query": profile(self.query).to_dict(),
            "document": profile(self.document).to_dict(),
            "between": self._between(),
        }

    def pictures(self, name: str) -> Iterator[tuple[str, Picture]]:
        """The plane of the first two components, and the spectrum, by file name."""
        from counterpoint.measure.alignment import spectrum
        from counterpoint.plots.pca import pca_plot
        from counterpoint.plots.spectrum import spectrum_plot

        groups = {
            "queries": self.query,
            "relevant documents": self.relevant,
            "other documents": self.document[self.other],
        }
        yield f"pca-{name}", pca_plot(groups, name)
        variances = {"queries": spectrum(self.query), "documents": spectrum(self.document)}
        yield f"spectrum-{name}", spectrum_plot(variances, name)

    def _between(self) -> dict[str, Any]:
        """`kl` is None where both sides encode queries to the same vectors: nothing is to be aligned.

        `room` is the query side's 1 − mean cosine of two queries as a share of the document side's. Where it
        is low, a low `kl` does not mean that the sides are aligned.
        """
        import numpy as np

        from counterpoint.measure.alignment import DAFT_DELTA, cross_cosine, kl_divergence, mean_cosine

        kl = None
        if not np.array_equal(self.query, self.crossed):
            # Where a set has many rows a text, a row may be there twice.
            kl = kl_divergence(np.unique(self.crossed, axis=0), np.unique(self.query, axis=0))
        return {
            "cosine": cross_cosine(self.query, self.document),
            "kl": kl,
            "delta": DAFT_DELTA * self.query.shape[1],
            "room": (1 - mean_cosine(self.query)) / (1 - mean_cosine(self.crossed)),
        }


def _sides(model: str, sample: Sample, on: str | None, seed: int) -> dict[str, Sides]:
    """The rows of the model's sets, or of one of them."""
    import numpy as np

    from counterpoint.errors import ConfigError
    from counterpoint.model import load_model  # brings torch with it

    loaded = load_model(model)
    if on is not None and on not in loaded.sets:
        raise ConfigError(f"--on {on}: the model makes {', '.join(loaded.sets)}")
    made = encode_texts(
        {
            "query": (loaded.encode_query, sample.queries),
            "document": (loaded.encode_document, sample.documents),
            "relevant": (loaded.encode_document, sample.relevant),
            "crossed": (loaded.encode_document, sample.queries),
        }
    )
    sides = {}
    for name in [on] if on is not None else loaded.sets:
        kept = {what: _some_rows(len(sets[name].values), seed) for what, sets in made.items()}
        rows = {what: sets[name].values[kept[what]] for what, sets in made.items()}
        other = np.repeat(sample.other, made["document"][name].lengths)[kept["document"]]
        sides[name] = Sides(**rows, other=other)
    return sides


def _some_rows(count: int, seed: int) -> np.ndarray:
    """Positions of `ROWS` rows at most; the same for sets of equal size."""
    import numpy as np

    if count <= ROWS:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, ROWS, replace=False))


def _read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics; a last one that is being written is left out.

    Raises:
        DataError: a line that is not as `train` writes it, or none at all.
    """
    from counterpoint.errors import DataError

    records = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(keepends=True), 1):
        if not line.endswith("\n"):
            break
        try:
            found = json.loads(line)
            records.append({**found, "number": int(found["number"]), "step": int(found["step"])})
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"not a line of metrics ({error!r})", path=path, line=number) from error
    if not records:
        raise DataError("no metrics yet; the run has only begun", path=path)
    return records


def _stages(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each stage's steps, its loss at the first and last line and at its lowest, and why it ended early."""
    found = []
    for number in dict.fromkeys(record["number"] for record in records):
        mine = [record for record in records if record["number"] == number]
        losses = [record["loss"] for record in mine if "loss" in record]
        stage = {"stage": mine[0]["stage"], "steps": mine[-1]["step"]}
        if losses:
            stage |= {"first_loss": losses[0], "lowest_loss": min(losses), "last_loss": losses[-1]}
        stopped = [record["stopped"] for record in mine if "stopped" in record]
        found.append({**stage, "stopped": stopped[-1] if stopped else None})
    return found


def _measures(records: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[int, float]]]:
    """Steps, counted over all stages, and values of every measure on the development set."""
    from counterpoint.plots.curves import measures_of

    return {curve.name: list(zip(curve.steps, curve.values, strict=True)) for curve in measures_of(records)}


def _curves(records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Picture]]:
    """A picture for each kind of number that the run has."""
    from counterpoint.plots.curves import curves_of, curves_plot, measures_of, stages_of

    if measures := measures_of(records):
        yield "measures", curves_plot(measures, value="on the development set", stages=stages_of(records))
    deltas = curves_of(records, "alignment.delta")
    for name, pattern, axis in CURVES:
        if curves := curves_of(records, pattern):
            levels = {"δ": deltas[0].values[-1]} if deltas and name == "divergence" else {}
            yield name, curves_plot(curves, value=axis, stages=stages_of(records), levels=levels)


def _text(result: Mapping[str, Any]) -> str:
    blocks = []
    if "stages" in result:
        header = ["stage", "steps", "first loss", "lowest", "last", "ended early"]
        keys = ("stage", "steps", "first_loss", "lowest_loss", "last_loss", "stopped")
        cells = [
            ["–" if stage.get(key) is None else stage[key] for key in keys] for stage in result["stages"]
        ]
        blocks.append(text_table(header, cells))
        blocks += [_development(name, found) for name, found in result["measures"].items()]
    if "sets" in result:
        rows = [
            [name, side, *(found[side][measure] for measure in ("rows", "dimension", *MEASURES))]
            for name, found in result["sets"].items()
            for side in ("query", "document")
        ]
        blocks.append(text_table(["set", "side", "rows", "dimension", *MEASURES], rows))
        blocks.append("\n".join(_sentence(name, found) for name, found in result["sets"].items()))
    if "pictures" in result:
        blocks.append("\n".join(result["pictures"]))
    return "\n\n".join(blocks)


def _development(name: str, found: Sequence[tuple[int, float]]) -> str:
    """How a measure went."""
    best = max(found, key=lambda point: point[1])
    first = found[0]
    return f"{name}: {first[1]:.4f} at step {first[0]}, at best {best[1]:.4f} at step {best[0]}"


def _sentence(name: str, found: Mapping[str, Any]) -> str:
    """What is between the sides of one set."""
    from counterpoint.learn import AlignmentStop  # torch is there by now

    between = found["between"]
    cosine = f"{name}: mean cosine of a query and a document {between['cosine']:.4f}"
    if between["kl"] is None:
        return f"{cosine}; both sides encode queries to the same vectors"
    matches = between["room"] >= AlignmentStop.least_match
    aligned = "aligned" if between["kl"] < between["delta"] and matches else "not aligned"
    apart = "" if matches else f", for the query side has {between['room']:.0%} of the document side's spread"
    numbers = f"KL of the sides on queries {between['kl']:.1f}, δ {between['delta']:.1f}"
    return f"{cosine}; {numbers}: {aligned}{apart}"
