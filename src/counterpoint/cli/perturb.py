"""`counterpoint perturb`: make an adversarial collection, with other words in documents than in queries."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.cli.judgements import judgements_of
from counterpoint.cli.options import Split
from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.escapes import escaped, json_text

if TYPE_CHECKING:
    from counterpoint.measure.adversarial import Tally

__all__ = ["perturb"]

RECORD = "perturbation.json"  # marks a folder that this command wrote and may replace


def perturb(
    collection: Annotated[str, typer.Argument(help="Collection with queries and judgements")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Write to this BEIR folder")],
    synonyms: Annotated[
        str, typer.Option(help="Take synonyms from nltk, or from a folder with WordNet")
    ] = "nltk",
    split: Split = None,
    relevant_from: Annotated[int, typer.Option(min=1, help="Set the lowest relevant grade")] = 1,
    seed: Annotated[int, typer.Option(help="Set the seed that draws synonyms")] = 0,
    share: Annotated[
        float, typer.Option(help="Replace this share of matching words: above 0, at most 1")
    ] = 1.0,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing folder")] = False,
    json: Json = False,
) -> None:
    """Replace words of relevant documents that match their queries with synonyms.

    This makes exact matching harder. Queries and judgements stay unchanged. Index and search the new folder,
    then `compare` the runs on both. A folder for --synonyms holds WordNet's senses and synsets.
    """
    from counterpoint.data import BEIR, open_thesaurus, write_beir
    from counterpoint.folders import FolderKind, publish_folder
    from counterpoint.measure import Adversary, Tally
    from counterpoint.measure import perturb as perturbed

    if output.exists() and Path(collection).exists() and output.samefile(collection):
        raise ConfigError(
            f"{output} is the collection itself, which must not change; choose another --output"
        )
    if output.exists() and not overwrite:
        raise ArtifactError("already exists; choose another folder or add --overwrite", path=output)
    thesaurus = open_thesaurus(synonyms)
    judged = judgements_of(collection, split, bare=False)
    source, tally = judged.whole("perturb"), Tally()
    adversary = Adversary(source.queries(judged.split), judged.qrels, thesaurus, seed, relevant_from, share)
    kind = FolderKind(RECORD, (BEIR.known_by, *BEIR.names))
    with publish_folder(output, overwrite=overwrite, kind=kind) as target:
        write_beir(perturbed(source, adversary, tally), target, overwrite=True)
        done = {
            "collection": source.name, "split": judged.split, "relevant_from": relevant_from, "seed": seed,
            "share": share, "synonyms": Path(synonyms).name, **asdict(tally),
            "kept": tally.matched - tally.replaced,
        }  # fmt: skip
        text = json_text(done, indent=2) + "\n"
        (target / RECORD).write_text(text, encoding="utf-8")
    emit({"output": str(output), **done}, lambda: escaped(_text(output, tally)), json)


def _text(output: Path, tally: Tally) -> str:
    without = tally.matched - tally.replaced - tally.spared
    return (
        f"{output}: {tally.changed:,} of {tally.documents:,} relevant documents changed; {tally.matched:,} "
        f"words in them match a query: {tally.replaced:,} were replaced, {without:,} have no synonym"
        + (f", {tally.spared:,} were kept by --share" if tally.spared else "")
    )
