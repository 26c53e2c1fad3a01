"""`counterpoint diagnose`: how a model's vectors lie in space, and how a training went."""

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
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.model import Model
    from counterpoint.plots import Picture

    Models = Sequence[tuple[str, Model]]  # by what the user calls them; the first is the one looked at

__all__ = ["diagnose"]


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
    on: Annotated[
        str | None,
        typer.Option(help="Only this vector set; of --against, too, if it has it.", show_default=False),
    ] = None,
    pairs: Annotated[
        Literal["judged", "bm25"],
        typer.Option(help="Pairs of texts: judged relevant, or BM25's first 100 documents."),
    ] = "judged",
    high: Annotated[
        str | None,
        typer.Option(help="ΔInterIso (HIL): the anisotropic vector set, H.", show_default=False),
    ] = None,
    low: Annotated[
        str | None,
        typer.Option(
            help="The isotropic set, L; of two, that of word embeddings unless given.", show_default=False
        ),
    ] = None,
    sample: Annotated[int, typer.Option(min=10, help="Queries, and documents, at most.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Decides which ones.")] = 0,
    plots: Annotated[
        Path | None, typer.Option(help="Draw pictures into this folder.", show_default=False)
    ] = None,
    layers: Annotated[
        bool, typer.Option("--layers", help="Look at every layer of the backbone, too.")
    ] = False,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="Another model, of the same texts: with --plots its vector sets join the picture scores "
            "(HIL, figures 2 and 6), with --layers its layers are compared (figure 5). May be repeated; "
            "layers are compared with the first.",
            show_default=False,
        ),
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
    """Say how a model's queries and documents lie in space, what whitening would do, and draw them."""
    from counterpoint.errors import ConfigError
    from counterpoint.files import writing

    if tokens is not None:
        counted = count_collection(tokens, model or "minilm", stem)
        return emit(counted, lambda: counts_text(counted), as_json)
    if model is None:
        raise ConfigError("name a MODEL or the folder of a run, or count tokens with --tokens COLLECTION")
    if on is not None and (high is not None or low is not None):
        raise ConfigError(
            "--on looks at one vector set, and --high and --low at two; leave out one or the other"
        )
    others = against or []
    if len(others) > int(layers) and plots is None:
        raise ConfigError(
            "--against adds a model to the picture scores, so choose a folder with --plots; with --layers, "
            "which compares layers, one may do without"
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
            "--layers, --against, --high and --low look at texts, so name a COLLECTION to take them from"
        )
    if plots is not None:
        for name, picture in pictures.items():
            picture.save(plots / f"{name}.{form}")
        result["pictures"] = [str(plots / f"{name}.{form}") for name in pictures]
    emit(result, lambda: _text(result), as_json)


def _look(
    models: Models, sample: Sample, on: str | None, seed: int, result: dict[str, Any], draw: bool
) -> tuple[dict[str, Space], dict[str, Picture]]:
    """Put the numbers of the first model's vector sets into the result; spaces, and pictures if wanted."""
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
        beside = {
            name: spaces_of(other, sample, on if on in other.sets else None, seed) for name, other in others
        }
        pictures |= score_pictures({model: spaces, **beside})
    return spaces, pictures


def _numbers(space: Space, maps: Whitened | str) -> dict[str, Any]:
    """What is measured of a set, and what is recommended."""
    if isinstance(maps, str):
        return {**space.numbers(), "whitening": {"refused": maps}}
    found = {**space.numbers(), "whitening": maps.numbers()}
    found["whitening"]["advice"] = advice(found)
    return found


def _layers(models: Models, sample: Sample, seed: int) -> dict[str, Any]:
    """The layers of the first model, and how they differ from those of the second."""
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
