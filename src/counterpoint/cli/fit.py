"""`counterpoint fit`: put an unsupervised map behind a model's vectors."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from counterpoint.cli.console import Json, emit, note
from counterpoint.cli.progress import progress
from counterpoint.cli.sampling import drawn
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.transform import Transform

__all__ = ["fit"]

Method = Literal["whitening", "nice", "glow", "normalise", "centre"]
OF_METHODS = {
    "rank": ("whitening", "nice", "glow"),
    "shrinkage": ("whitening",),
    "power": ("whitening",),
    "steps": ("nice", "glow"),
    "level": ("whitening", "nice", "glow", "normalise"),
}
MOST_QUERIES = 0.2  # of the texts; with a tenth, maps of small collections ranked a little better
MANY_QUERIES = (
    "{:.0%} of the texts are queries, so the mean lies between theirs and the documents'; where the two "
    "sides lie apart, documents are a cone about it. Without --queries it is the documents'"
)


def fit(
    method: Annotated[Method, typer.Argument(help="What is fitted.", show_default=False)],
    model: Annotated[str, typer.Argument(help="Model: a name, a folder, or a hub id.", show_default=False)],
    collection: Annotated[
        str, typer.Argument(help="Collection to whose texts it is fitted.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.", show_default=False)],
    on: Annotated[
        str | None, typer.Option(help="The vector set; needed where there are several.", show_default=False)
    ] = None,
    level: Annotated[
        Literal["token", "sequence"] | None,
        typer.Option(
            show_default=False,
            help="Of a set of one vector a text: map its tokens before the mean, or the mean (unless given).",
        ),
    ] = None,
    rank: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Components kept, the leading principal directions; all unless given. Flows come behind a "
            "rotation to them.",
            show_default=False,
        ),
    ] = None,
    shrinkage: Annotated[
        str | None,
        typer.Option(
            help="Whitening: share of the covariance that becomes a multiple of the identity, from 0 to 1, "
            "or 'oas', which finds one for the number of vectors; 0 unless given.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Flows: training steps at most; 1000 unless given.", show_default=False),
    ] = None,
    power: Annotated[
        float | None,
        typer.Option(
            help="Whitening: exponent of the variances; -0.5 (unless given) makes them equal, -0.25 goes "
            "half the way, 0 only centres and turns.",
            min=-0.5,
            max=0.0,
            show_default=False,
        ),
    ] = None,
    documents: Annotated[
        int, typer.Option(min=0, help="Documents drawn at random to fit it to; 0 takes all.")
    ] = 10_000,
    queries: Annotated[
        str | None,
        typer.Option(metavar="SPLIT", help="Fit it to the queries of this split, too.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides which documents, and a flow's start.")] = 0,
    overwrite: Annotated[bool, typer.Option(help="Replace a folder that is already there.")] = False,
    json: Json = False,
) -> None:
    """Fit a map to MODEL's vectors of COLLECTION, whitening or a normalising flow; save MODEL with it.

    `centre` fits nothing new: the maps that MODEL has subtract the mean of COLLECTION from now on.
    """
    from counterpoint.errors import ArtifactError, ConfigError
    from counterpoint.folders import SAVED_PART, check_replaceable
    from counterpoint.learn import FitTexts, fit_behind, fitted_dim, recentre_behind
    from counterpoint.loading import load_model

    given = {"rank": rank, "shrinkage": shrinkage, "power": power, "steps": steps, "level": level}
    for name in (name for name, value in given.items() if value is not None):
        if method not in OF_METHODS[name]:
            raise ConfigError(f"--{name} is for {' and '.join(OF_METHODS[name])}; leave it out")
    scaling = {"shrinkage": _share(shrinkage), "power": -0.5 if power is None else power}
    if output.exists() and not overwrite:
        raise ArtifactError("is already there; choose another folder or add --overwrite", path=output)
    check_replaceable(output, SAVED_PART)
    loaded = load_model(model)
    chosen = on or next(iter(loaded.sets))
    if on is None and len(loaded.sets) > 1:
        raise ConfigError(f"the model makes {', '.join(loaded.sets)}; choose one with --on")

    # What cannot be fitted is told before anything takes time.
    made: list[Any] = []
    if method != "centre":
        made += _declared(method, fitted_dim(loaded, chosen, level), rank, scaling, steps, seed)
    known = chosen in loaded.sets  # if not, that is told where it is centred
    plain = known and not (loaded.has_unit_length(chosen) or loaded.is_weighed(chosen))
    texts, more = _texts(collection, documents, queries, seed)
    if known and loaded.sets[chosen].pooled and level != "token":
        _check_rows(made, len(FitTexts(texts, more).divided()[0]))
    started = time.perf_counter()
    with (
        warnings.catch_warnings(record=True) as raised,
        progress("encoding", "texts", len(texts) + len(more)) as encoded,
        progress("training", "steps") as trained,
    ):
        warnings.simplefilter("always")

        fitted = FitTexts(texts, more, encoded)
        if method == "centre":
            recentre_behind(loaded, chosen, fitted)
        else:
            fit_behind(
                loaded, chosen, lambda dim: made, fitted, level, lambda step, total, bits: trained(step)
            )
    mapped = level or ("sequence" if loaded.sets[chosen].pooled else "token")
    for warning in raised:
        note(str(warning.message))
    if method != "normalise" and mapped == "sequence" and len(more) > MOST_QUERIES * len(fitted):
        note(MANY_QUERIES.format(len(more) / len(fitted)))
    if plain and method not in ("normalise", "centre"):
        note(
            f"the vectors of {chosen!r} had other lengths; now they have length 1: inner products are cosines"
        )
    loaded.save(output, overwrite=overwrite)
    result = {
        "output": str(output), "method": method, "on": chosen,
        "level": None if method == "centre" else mapped,
        "documents": len(texts), "queries": len(more),
        "vectors": None if method in ("normalise", "centre") else int(made[-1].count_),
        "components": loaded.sets[chosen].dim, "kept": made[-1].kept if method == "whitening" else None,
        **_bits(made), "seconds": round(time.perf_counter() - started, 2),
    }  # fmt: skip
    emit(result, lambda: _text(result), json)


def _share(shrinkage: str | None) -> float | Literal["oas"]:
    from counterpoint.errors import ConfigError

    if shrinkage is None or shrinkage == "oas":
        return shrinkage or 0.0
    try:
        return float(shrinkage)
    except ValueError as error:
        raise ConfigError(
            f"--shrinkage: expected a share from 0 to 1 or 'oas', found {shrinkage!r}"
        ) from error


def _declared(
    method: Method, dim: int, rank: int | None, scaling: Mapping[str, Any], steps: int | None, seed: int
) -> list[Transform]:
    from counterpoint.transform import FlowTraining, Glow, Nice, Normalise, Whitening

    training = FlowTraining(seed=seed) if steps is None else FlowTraining(seed=seed, steps=steps)
    if method == "normalise":
        return [Normalise()]
    if method == "whitening":
        return [Whitening(dim, rank=rank, **scaling)]
    flow = Nice(rank or dim, fitting=training) if method == "nice" else Glow(rank or dim, fitting=training)
    return [flow] if rank is None else [Whitening(dim, rank=rank, power=0.0), flow]


def _check_rows(made: Sequence[Transform], rows: int) -> None:
    """Refuse a flow behind more directions than so many vectors can vary in.

    Raises:
        ConfigError: saying which rank is possible.
    """
    from counterpoint.errors import ConfigError
    from counterpoint.transform import Flow

    flow = made[-1] if len(made) > 1 else None  # alone it is fitted to all components, and warns
    if isinstance(flow, Flow) and flow.dim > (most := rows - 1):
        possible = most // flow.divisor * flow.divisor
        choose = f"choose --rank {possible} or lower, or fit on" if possible else "fit on"
        raise ConfigError(
            f"--rank {flow.dim}: {rows:,} vectors vary in {most:,} directions at most; {choose} more texts"
        )


def _bits(made: Sequence[Transform]) -> dict[str, float | int | None]:
    """What a flow's likelihood is, of rows it was fitted to and of others; None without a flow."""
    from counterpoint.transform import Flow

    bits = made[-1].bits if made and isinstance(made[-1], Flow) else None
    return {
        "bits_per_dimension": None if bits is None else bits.training,
        "held_out_bits_per_dimension": None if bits is None else bits.held_out,
        "held_out": None if bits is None else bits.rows_held_out,
    }


def _texts(source: str, count: int, split: str | None, seed: int) -> tuple[list[str], list[str]]:
    """Documents drawn at random, all with the same chance, and a split's queries."""
    import numpy as np

    from counterpoint.data import open_collection

    collection = open_collection(source)
    queries = [] if split is None else list(collection.queries(split).values())
    rng = np.random.default_rng(seed)
    return [document.full_text for document in drawn(collection.documents(), count, rng)], queries


def _text(result: dict[str, Any]) -> str:
    facts = [f"{result['documents']:,} documents"]
    facts += [f"{result['queries']:,} queries"] if result["queries"] else []
    facts += [f"{result['vectors']:,} vectors"] if result["vectors"] is not None else []
    if result["kept"] is not None:
        facts.append(f"{result['kept']} directions")
    if result["bits_per_dimension"] is not None:
        held_out = result["held_out_bits_per_dimension"]
        other = "too few to hold some out"
        if held_out is not None:
            other = f"{held_out:.3f} of {result['held_out']:,} vectors held out"
        facts.append(f"{result['bits_per_dimension']:.3f} bits a component ({other})")
    level = "" if result["level"] is None else f" ({result['level']})"
    lines = (
        f"{result['output']}: {result['method']} on {result['on']}{level}, "
        f"{result['components']} components, from {', '.join(facts)} in {result['seconds']:.1f} s",
        f"Index with it: counterpoint index SOURCE -o INDEX --model {result['output']}",
    )
    return "\n".join(map(escaped, lines))
