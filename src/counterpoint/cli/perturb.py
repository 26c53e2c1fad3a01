"""`counterpoint perturb`: an adversarial collection, in which documents do not share their queries' words."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.cli.judgements import judgements_of
from counterpoint.escapes import escaped, json_text

if TYPE_CHECKING:
    from counterpoint.measure.adversarial import Tally

__all__ = ["perturb"]

RECORD = "perturbation.json"  # what makes a folder one of ours, which may be replaced


def perturb(
    collection: Annotated[
        str, typer.Argument(help="Collection with queries and judgements.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="BEIR folder to write.", show_default=False)],
    synonyms: Annotated[
        str,
        typer.Option(help="Where synonyms are from: 'nltk', or a folder with WordNet's senses and synsets."),
    ] = "nltk",
    split: Annotated[
        str | None, typer.Option(help="Which judgements; needed where there are several.")
    ] = None,
    relevant_from: Annotated[int, typer.Option(min=1, help="Lowest grade that is relevant.")] = 1,
    seed: Annotated[int, typer.Option(help="Another seed draws other synonyms.")] = 0,
    share: Annotated[
        float, typer.Option(help="Of a document's matching words that are to go: above 0, at most 1.")
    ] = 1.0,
    overwrite: Annotated[bool, typer.Option(help="Replace a folder that is already there.")] = False,
    json: Json = False,
) -> None:
    """Replace words of relevant documents that match their queries by synonyms: harder for exact matching.

    Queries and judgements stay. Index the new folder, search it, and `compare` the runs on both.
    """
    from counterpoint.data import BEIR, open_thesaurus, write_beir
    from counterpoint.errors import ArtifactError, ConfigError
    from counterpoint.folders import FolderKind, publish_folder
    from counterpoint.measure import Adversary, Tally
    from counterpoint.measure import perturb as perturbed

    if output.exists() and Path(collection).exists() and output.samefile(collection):
        raise ConfigError(f"{output} is the collection itself, which stays as it is; choose another --output")
    if output.exists() and not overwrite:
        raise ArtifactError("is already there; choose another folder or add --overwrite", path=output)
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
        + (f", {tally.spared:,} were not to go" if tally.spared else "")
    )
