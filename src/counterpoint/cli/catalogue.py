"""The commands, in groups: the help line, the module and the examples of each."""

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
        line: its help line; the list of commands has room for 66 characters.
        place: module of this package, and the function or typer application in it.
        examples: command lines that can be pasted.
    """

    line: str
    place: str
    examples: tuple[str, ...] = ()


GROUPS: Mapping[str, Mapping[str, Entry]] = MappingProxyType({
    "Search": {
        "index": Entry(
            "Build an index of a folder, a file or a collection",
            "index:index",
            (
                "counterpoint index notes/ -o notes.index",
                "counterpoint index papers.jsonl -o papers.index --model none",
                "counterpoint index stdlib: -o python.index --passage-words 120",
            ),
        ),
        "search": Entry(
            "Search an index: one query, a prompt, or a file of queries",
            "search:app",
            (
                'counterpoint search notes.index "animals of the ocean" --explain',
                "counterpoint search notes.index",
                "cat questions.txt | counterpoint search notes.index - > answers.jsonl",
                "counterpoint search notes.index --queries queries.tsv -o run.trec",
            ),
        ),
        "info": Entry("Show an index's contents and disk usage", "info:info"),
        "verify": Entry("Check every file of an index against its checksum", "info:verify"),
        "export": Entry(
            "Export an index to a folder or to a search engine",
            "export:export",
            (
                "counterpoint export notes.index -o exported/ --vectors",
                "counterpoint index exported/ -o notes.index",
                "counterpoint export notes.index --to qdrant --url http://localhost:6333",
            ),
        ),
        "serve": Entry(
            "Serve indexes over HTTP",
            "serve:serve",
            (
                "counterpoint serve notes.index",
                "COUNTERPOINT_READ_KEYS=$KEY counterpoint serve notes.index --host 0.0.0.0",
            ),
        ),
        "plan": Entry(
            "Estimate the machines, memory and disk that an index needs",
            "plan:plan",
            (
                "counterpoint plan --documents 50M --qps 200",
                "counterpoint plan --documents 2M --index sample.index --latency 100",
            ),
        ),
        "mcp": Entry(
            "Give language models tools to search indexes (MCP)",
            "mcp:mcp",
            (
                "counterpoint mcp notes.index",
                "counterpoint mcp handbook=wiki.index papers=http://localhost:8000/papers",
            ),
        ),
        "demo": Entry("Index Python's documentation and answer three questions", "demo:demo"),
    },
    "Change": {
        "add": Entry(
            "Add documents to an index",
            "add:add",
            ("counterpoint add notes.index more-notes/", "counterpoint add papers.index new.jsonl"),
        ),
        "replace": Entry(
            "Add documents, replacing those with the same ids",
            "add:replace",
            (
                "counterpoint replace notes.index notes/",
                "cat new.jsonl | counterpoint replace papers.index -",
            ),
        ),
        "delete": Entry(
            "Delete documents by id or by a metadata condition",
            "delete:delete",
            (
                "counterpoint delete papers.index 4983 5836",
                "counterpoint delete papers.index --where \"year < 2010\"",
                "cat gone.txt | counterpoint delete papers.index -",
            ),
        ),
        "compact": Entry(
            "Merge an index's segments and drop deleted documents",
            "compact:compact",
            ("counterpoint compact papers.index", "counterpoint compact papers.index --refit"),
        ),
    },
    "Evaluate": {
        "evaluate": Entry(
            "Measure an index or saved runs against judgements",
            "evaluate:evaluate",
            (
                "counterpoint evaluate scifact/ --split test --index scifact.index",
                "counterpoint evaluate scifact/ --split test --run run.trec",
                'counterpoint evaluate qrels.tsv --run run.trec --measures "nDCG@10 AP"',
            ),
        ),
        "compare": Entry("Compare runs: significance, intervals and effect sizes", "compare:compare"),
        "fuse": Entry("Fuse several runs into one", "fuse:fuse"),
        "rerank": Entry("Rerank the top documents of a run with a cross-encoder", "rerank:rerank"),
        "tune": Entry("Tune the weights of an index's hybrid on judged queries", "tune:tune"),
        "sweep": Entry("Evaluate a grid of models, collections and settings", "sweep:sweep"),
        "folds": Entry("Split judged queries into folds for cross-validation", "folds:folds"),
    },
    "Train": {
        "train": Entry(
            "Train a model from a recipe",
            "train:train",
            (
                "counterpoint train hil-paper --data collection/ -o run",
                "counterpoint train my-recipe.py --data collection/ -o run --set seed=2",
                "counterpoint index collection/ -o trained.index --model run",
            ),
        ),
        "recipe": Entry("List, show and check recipes", "recipe:app"),
        "mine": Entry("Mine hard negatives for training", "mine:mine"),
        "fit": Entry("Fit whitening or a flow to a model's vectors", "fit:fit"),
    },
    "Analyse": {
        "diagnose": Entry("Diagnose a model's embedding geometry", "diagnose:diagnose"),
        "overlap": Entry("Show the overlap between first-stage retrievers", "overlap:overlap"),
        "perturb": Entry("Replace words that match queries with synonyms", "perturb:perturb"),
    },
})  # fmt: skip

COMMANDS: Mapping[str, Entry] = MappingProxyType(
    {name: entry for group in GROUPS.values() for name, entry in group.items()}
)
