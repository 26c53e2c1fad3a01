"""`counterpoint diagnose`: the geometry of a model's embeddings, and the course of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.cli.diagnosis.advice import advice
from counterpoint.cli.diagnosis.delta import delta_of, ends_of, retrieved_of
from counterpoint.cli.diagnosis.gates import gate_text, gates_of
from counterpoint.cli.diagnosis.layers import layers_of, layers_text
from counterpoint.cli.diagnosis.page import sets_text
from counterpoint.cli.diagnosis.pictures import layer_pictures, score_pictures, space_pictures
from counterpoint.cli.diagnosis.space import Space, spaces_of
from counterpoint.cli.diagnosis.training import curves, read_metrics, summary, training_text
from counterpoint.cli.diagnosis.whitened import Whitened, whitened
from counterpoint.cli.sampling import DEPTH, Sample, sample_of
from counterpoint.cli.token_counts import count_collection, counts_text
from counterpoint.errors import ConfigError
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.model import Model
    from counterpoint.plots import Picture

    Models = Sequence[tuple[str, Model]]  # by the names typed; the first is the one diagnosed

__all__ = ["diagnose"]


def diagnose(
    model: Annotated[
        str | None, typer.Argument(help="Model name, folder or hub id, or a training run's folder")
    ] = None,
    collection: Annotated[
        str | None, typer.Argument(help="Collection of the texts; optional for a training run")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Choose the queries' split (default: test, or the only one)")
    ] = None,
    on: Annotated[str | None, typer.Option(help="Diagnose only this vector set")] = None,
    pairs: Annotated[
        Literal["judged", "bm25"],
        typer.Option(help="Pair queries with judged or with BM25's first documents"),
    ] = "judged",
    high: Annotated[str | None, typer.Option(help="Name the anisotropic set (H) of ΔInterIso")] = None,
    low: Annotated[str | None, typer.Option(help="Name the isotropic set (L) of ΔInterIso")] = None,
    sample: Annotated[int, typer.Option(min=10, help="Sample at most this many queries and documents")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Set the sampling seed")] = 0,
    plots: Annotated[Path | None, typer.Option(help="Write pictures to this folder")] = None,
    layers: Annotated[
        bool, typer.Option("--layers", help="Measure every layer of the backbone as well")
    ] = False,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL", help="Compare with another model on the same texts (repeatable)"),
    ] = None,
    form: Annotated[
        Literal["png", "svg", "pdf"], typer.Option("--format", help="Choose the format of pictures")
    ] = "png",
    tokens: Annotated[str | None, typer.Option(help="Count the tokens of this collection instead")] = None,
    stem: Annotated[
        Literal["snowball", "porter", "nltk", "lower", "none"],
        typer.Option(help="With --tokens: choose the stemmer (ColBERTer's is nltk)"),
    ] = "snowball",
    as_json: Json = False,
) -> None:
    """Diagnose the embedding geometry of MODEL's queries and documents, and the effect of whitening.

    --plots draws it. --pairs bm25 pairs each query with BM25's first 100 documents.

    --against adds another model on the same texts. With --plots, its vector sets join the picture of scores
    (HIL, figures 2 and 6). With --layers, the layers of the first such model are compared (figure 5). --on
    also selects the set of these models, if they have it.

    ΔInterIso (HIL) compares the vector sets --high and --low. Of two sets of many vectors per text, static
    word embeddings are --low by default.

    --tokens counts word-pieces, words and distinct words with MODEL's tokenizer (default: minilm's, which is
    BERT's).
    """
    from counterpoint.files import writing

    if tokens is not None:
        counted = count_collection(tokens, model or "minilm", stem)
        return emit(counted, lambda: counts_text(counted), as_json)
    if model is None:
        raise ConfigError("name a MODEL or the folder of a run, or count tokens with --tokens COLLECTION")
    if on is not None and (high is not None or low is not None):
        raise ConfigError(
            "--on selects one vector set, and --high and --low select two; leave out one or the other"
        )
    others = against or []
    if len(others) > int(layers) and plots is None:
        raise ConfigError(
            "--against adds models to the picture of scores, so choose a folder with --plots; with --layers, "
            "one model may go without"
        )
    if plots is not None:
        with writing(plots):  # before anything takes time
            plots.mkdir(parents=True, exist_ok=True)
    metrics = Path(model) / "metrics.jsonl"
    result: dict[str, Any] = {"model": model}
    pictures: dict[str, Picture] = {}
    if metrics.is_file():
        records = read_metrics(metrics)
        result |= summary(records)
        pictures |= curves(records) if plots is not None else {}
    elif collection is None:
        raise ConfigError(
            f"{model}: not a training run (no metrics.jsonl), so name a COLLECTION to take texts from"
        )
    if collection is not None:
        from counterpoint.loading import load_model  # brings torch with it

        drawn = sample_of(collection, split, sample, seed, DEPTH if pairs == "bm25" else 0)
        result |= {"collection": collection, "split": drawn.split}
        models = [(name, load_model(name)) for name in [model, *others]]
        loaded = models[0][1]
        ends = None if on is not None else ends_of(loaded.sets, high, low)
        spaces, made = _look(models, drawn, on, seed, result, plots is not None)
        pictures |= made
        result["delta_inter_iso"] = None
        if ends is not None:
            retrieved = retrieved_of(collection, drawn, sample, seed)
            result["delta_inter_iso"] = delta_of(loaded, spaces, ends, retrieved)
        if gates := gates_of(loaded, list(drawn.documents.values()), on):
            result["gates"] = gates
        if layers:
            result["layers"] = _layers(models, drawn, seed)
            pictures |= layer_pictures(result["layers"]) if plots is not None else {}
    elif layers or others or high or low:
        raise ConfigError(
            "--layers, --against, --high and --low need texts, so name a COLLECTION to take them from"
        )
    if plots is not None:
        for name, picture in pictures.items():
            picture.save(plots / f"{name}.{form}")
        result["pictures"] = [str(plots / f"{name}.{form}") for name in pictures]
    emit(result, lambda: _text(result), as_json)


def _look(
    models: Models, sample: Sample, on: str | None, seed: int, result: dict[str, Any], draw: bool
) -> tuple[dict[str, Space], dict[str, Picture]]:
    """Add the measures of the first model's sets to the result; return its spaces, and pictures if wanted."""
    (model, loaded), *others = models
    made = spaces_of(loaded, sample, on, seed)
    result["too_few_rows"] = {name: few for name, space in made.items() if (few := space.few())}
    spaces = {name: space for name, space in made.items() if name not in result["too_few_rows"]}
    result["texts"] = {
        "queries": len(sample.queries),
        "documents": len(sample.documents),
        "pairs": len(sample.pairs()),
        "from": sample.pairing(),
    }
    result["sets"], pictures = {}, {}
    for name, space in spaces.items():
        maps = whitened(space)
        result["sets"][name] = _numbers(space, maps)
        pictures |= space_pictures(space, maps) if draw else {}
    if draw:
        compared = {
            name: spaces_of(other, sample, on if on in other.sets else None, seed) for name, other in others
        }
        pictures |= score_pictures({model: spaces, **compared})
    return spaces, pictures


def _numbers(space: Space, maps: Whitened | str) -> dict[str, Any]:
    if isinstance(maps, str):
        return {**space.numbers(), "whitening": {"refused": maps}}
    found = {**space.numbers(), "whitening": maps.numbers()}
    found["whitening"]["advice"] = advice(found)
    return found


def _layers(models: Models, sample: Sample, seed: int) -> dict[str, Any]:
    from counterpoint.measure.layers import log_differences

    found, sizes = layers_of(models[0][1], sample, seed)
    layers = [layer.to_dict() for layer in found]
    against = None
    if len(models) > 1:
        against, other = models[1]
        base, _ = layers_of(other, sample, seed)
        for layer, difference in zip(layers, log_differences(found, base), strict=False):
            layer["log_difference"] = difference
    return {"texts": sizes, "from": sample.pairing(), "against": against, "layers": layers}


def _text(result: Mapping[str, Any]) -> str:
    blocks = [training_text(result)] if "stages" in result else []
    blocks += [sets_text(result)] if "sets" in result else []
    blocks += [gate_text(result["gates"])] if "gates" in result else []
    blocks += [layers_text(result["layers"])] if "layers" in result else []
    blocks += ["\n".join(map(escaped, result["pictures"]))] if "pictures" in result else []
    return "\n\n".join(blocks)
