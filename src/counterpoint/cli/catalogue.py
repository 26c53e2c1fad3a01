"""The commands, in groups: what each is for in one line, where it is, and how it is typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

__all__ = ["COMMANDS", "GROUPS", "Entry"]


@final
@dataclass(frozen=True)
class Entry:
    """A command that is imported when it is typed.

    Attributes:
        line: what it is for; the list of commands has room for 66 characters.
        place: module of this package and the function, or typer application, in it.
        examples: lines as they are typed.
    """

    line: str
    place: str
    examples: tuple[str, ...] = ()


GROUPS: Mapping[str, Mapping[str, Entry]] = MappingProxyType({
    "Search": {
        "index": Entry(
            "Build an index of a folder, a file or a collection.",
            "index:index",
            (
                "counterpoint index notes/ -o notes.index",
                "counterpoint index papers.jsonl -o papers.index --model none",
                "counterpoint index stdlib: -o python.index --passage-words 120",
            ),
        ),
        "search": Entry(
            "Ask an index: one query, a prompt, or a file of queries.",
            "search:app",
            (
                'counterpoint search notes.index "animals of the ocean" --explain',
                "counterpoint search notes.index",
                "cat questions.txt | counterpoint search notes.index - > answers.jsonl",
                "counterpoint search notes.index --queries queries.tsv -o run.trec",
            ),
        ),
        "info": Entry("Show what an index holds and where its bytes are.", "info:info"),
        "verify": Entry("Compare every file of an index with its checksum.", "info:verify"),
        "export": Entry(
            "Export an index's documents, and vectors if asked for.",
            "export:export",
            (
                "counterpoint export notes.index -o exported/ --vectors",
                "counterpoint index exported/ -o notes.index",
            ),
        ),
        "demo": Entry("Index Python's documentation and answer three questions.", "demo:demo"),
    },
    "Change": {
        "add": Entry(
            "Add documents to an index.",
            "add:add",
            ("counterpoint add notes.index more-notes/", "counterpoint add papers.index new.jsonl"),
        ),
        "replace": Entry(
            "Add documents that take the places of those with their ids.",
            "add:replace",
            (
                "counterpoint replace notes.index notes/",
                "cat new.jsonl | counterpoint replace papers.index -",
            ),
        ),
        "delete": Entry(
            "Delete documents of an index by id or by a condition.",
            "delete:delete",
            (
                "counterpoint delete papers.index 4983 5836",
                "counterpoint delete papers.index --where \"year < 2010\"",
                "cat gone.txt | counterpoint delete papers.index -",
            ),
        ),
        "compact": Entry(
            "Join the segments of an index and leave deleted documents out.",
            "compact:compact",
            ("counterpoint compact papers.index", "counterpoint compact papers.index --refit"),
        ),
    },
    "Evaluate": {
        "evaluate": Entry(
            "Measure an index, or saved runs, by a collection's judgements.",
            "evaluate:evaluate",
            (
                "counterpoint evaluate scifact/ --split test --index scifact.index",
                "counterpoint evaluate scifact/ --split test --run run.trec",
                'counterpoint evaluate qrels.tsv --run run.trec --measures "nDCG@10 AP"',
            ),
        ),
        "compare": Entry("Compare runs: significance, intervals and effect sizes.", "compare:compare"),
        "fuse": Entry("Fuse runs into one.", "fuse:fuse"),
        "rerank": Entry("Score the best documents of a run again by a cross-encoder.", "rerank:rerank"),
        "tune": Entry("Choose the weights of an index's hybrid on judged queries.", "tune:tune"),
        "sweep": Entry("Evaluate a grid of models, collections and settings.", "sweep:sweep"),
        "folds": Entry("Split judged queries to train, validate and test on.", "folds:folds"),
    },
    "Train": {
        "train": Entry(
            "Train a model as a recipe says.",
            "train:train",
            (
                "counterpoint train hil-paper --data collection/ -o run",
                "counterpoint train my-recipe.py --data collection/ -o run --set seed=2",
                "counterpoint index collection/ -o trained.index --model run",
            ),
        ),
        "recipe": Entry("List, show and check recipes.", "recipe:app"),
        "mine": Entry("Write hard negatives of a collection for training.", "mine:mine"),
        "fit": Entry("Fit a map to a model's vectors: whitening or a flow.", "fit:fit"),
    },
    "Analyse": {
        "diagnose": Entry("Say how a model's queries and documents lie in space.", "diagnose:diagnose"),
        "overlap": Entry("Say what first stages find together and apart.", "overlap:overlap"),
        "perturb": Entry("Replace words that queries match by synonyms.", "perturb:perturb"),
    },
})  # fmt: skip

COMMANDS: Mapping[str, Entry] = MappingProxyType(
    {name: entry for group in GROUPS.values() for name, entry in group.items()}
)
