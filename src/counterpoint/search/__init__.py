"""Search: settings, workflows, the engine, runs, fusion and pipelines."""

from counterpoint.search.engine import Searcher
from counterpoint.search.fusion import Fusion, fuse, fuse_runs
from counterpoint.search.hits import Answer, Hit, WeighedWord
from counterpoint.search.pipeline import Pipeline, Retriever
from counterpoint.search.run import Run
from counterpoint.search.settings import LEXICAL, WORKFLOWS, SearchSettings, Workflow

__all__ = [
    "LEXICAL",
    "WORKFLOWS",
    "Answer",
    "Fusion",
    "Hit",
    "Pipeline",
    "Retriever",
    "Run",
    "SearchSettings",
    "Searcher",
    "WeighedWord",
    "Workflow",
    "fuse",
    "fuse_runs",
]
