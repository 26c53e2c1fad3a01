"""Run a sweep: keep existing results, and compute the rest cell by cell, model by model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from counterpoint.errors import CounterpointError
from counterpoint.index import Index, build_index
from counterpoint.measure import evaluate
from counterpoint.provenance import provenance
from counterpoint.search import LEXICAL, Run, Searcher
from counterpoint.sweep.cells import Cell, SweepModel
from counterpoint.sweep.encodings import CachedModel
from counterpoint.sweep.grid import ModelEntry
from counterpoint.sweep.plan import Failure, Loader, Outcome, SweepPlan
from counterpoint.sweep.report import report_of, write_report
from counterpoint.sweep.store import GRID, Store
from counterpoint.sweep.timing import HITS, Latency, measure_latency, sample

__all__ = ["Watch", "run_sweep"]


@final
@dataclass(frozen=True)
class Watch:
    """Callbacks for the progress of a sweep.

    Attributes:
        cells: called with the number of cells done.
        encoded: called with the number of texts newly encoded.
    """

    cells: Callable[[int], object] = lambda done: None
    encoded: Callable[[int], object] = lambda total: None


def run_sweep(
    plan: SweepPlan, folder: str | Path, load: Loader, *, command: str = "", watch: Watch | None = None
) -> dict[str, Any]:
    """Compute the cells that are missing in a folder, write the report and return it as plain data.

    A cell with an error that the user can fix is recorded and does not stop the others.

    Args:
        plan: from `plan_sweep`.
        folder: created if missing. See `Store`.
        load: loads the models again.
        command: what the user typed, for the record.
        watch: receives progress.

    Raises:
        ArtifactError: another sweep is writing to the folder, it contains something else, or it cannot be
            written.
        MissingExtraError: matplotlib, which the report needs, is not installed.
    """
    from counterpoint.plots import picture

    picture(1, 1)  # fails now if matplotlib is missing, not after hours
    store, outcome = Store(folder), Outcome(failures=list(plan.failures))
    with store.locked():
        store.write_text(GRID, plan.grid.to_toml())
        work = Work(plan, store, outcome, command, watch or Watch())
        by_model: dict[ModelEntry | None, list[Cell]] = {}  # so that each model is loaded once
        for cell in plan.cells:
            by_model.setdefault(cell.model, []).append(cell)
        for entry, cells in by_model.items():
            work.model(entry, cells, load)
        if not plan.grid.keep_encodings and not outcome.failures:
            store.forget_encodings()
        report = report_of(plan, outcome, store, command)
        write_report(store, report)
    return report


@final
class Work:
    """A sweep in progress."""

    def __init__(self, plan: SweepPlan, store: Store, outcome: Outcome, command: str, watch: Watch):
        self.plan, self.store, self.outcome = plan, store, outcome
        self.command, self.watch = command, watch
        self._done = 0

    def model(self, entry: ModelEntry | None, cells: Sequence[Cell], load: Loader) -> None:
        """Process all cells of one model. The model is loaded only if one of them is missing."""
        missing = [cell for cell in cells if not self.store.has(cell.key)]
        for cell in cells:
            if cell not in missing:
                with self._recorded(cell):
                    self.outcome.results[cell.key] = self._kept(cell)
        if not missing:
            return
        if entry is None or entry.model is None:
            self._missing(missing, None, None)
            return
        try:
            model = load(entry.model)
            with CachedModel(model, self.store.encodings(model.fingerprint()), self._encoded) as cached:
                self._missing(missing, model, cached)
        except CounterpointError as error:
            self.outcome.failures.append(Failure(f"model {entry.name}", str(error)))

    def _missing(self, cells: Sequence[Cell], model: SweepModel | None, cached: CachedModel | None) -> None:
        encode: dict[str, Latency] = {}
        for cell in cells:
            with self._recorded(cell):
                if model is not None and cell.collection not in encode:
                    texts = sample(list(self.plan.collections[cell.collection].queries.values()))
                    encode[cell.collection] = measure_latency(texts, lambda text: model.encode_query([text]))
                self.outcome.results[cell.key] = self._computed(cell, cached, encode.get(cell.collection))
                self.outcome.computed.append(cell.key)

    @contextmanager
    def _recorded(self, cell: Cell) -> Iterator[None]:
        """Record errors that the user can fix as failures. Other exceptions pass through."""
        try:
            yield
        except CounterpointError as error:
            self.outcome.failures.append(Failure(cell.label(self.plan.grid.settings), str(error)))
        self._done += 1
        self.watch.cells(self._done)

    def _encoded(self, new: int) -> None:
        self.outcome.encoded += new
        self.watch.encoded(self.outcome.encoded)

    # -- one cell --------------------------------------------------------------------------------------

    def _kept(self, cell: Cell) -> dict[str, Any]:
        """Read a stored result. If a measure is missing, evaluate its run again."""
        result = self.store.read_result(cell.key)
        if not set(self._measures(cell)) <= set(result["measured"]["values"]):
            result["measured"] = self._measured(cell, self.store.read_run(cell.key))
            self.store.write_result(cell.key, result)
        return result

    def _computed(self, cell: Cell, cached: CachedModel | None, encode: Latency | None) -> dict[str, Any]:
        judged = self.plan.collections[cell.collection]
        folder = self.store.index(cell.index_key)
        if not (folder / "manifest.json").is_file():
            build_index(judged.collection.documents(), cached, folder, cell.index)
        with Index(folder) as index:
            searcher = Searcher(index, cached, cell.search)
            run = searcher.run(judged.queries, cell.k, workflow=cell.workflow)
            texts = sample(list(judged.queries.values()))
            if cached is not None:
                cached.hold(texts)
            warm = Searcher(index, cached, cell.search)
            search = measure_latency(texts, lambda text: warm.search(text, HITS, workflow=cell.workflow))
            stored = index.info()
        self.store.write_run(cell.key, run)
        result = {
            "identity": cell.identity,
            "settings": {
                "workflow": cell.workflow,
                "k": cell.k,
                "index": asdict(cell.index),
                "search": cell.search.to_dict(),
            },
            "model": cell.model and asdict(cell.model),
            "collection": judged.to_dict(),
            "index": cell.index_key,
            "measured": self._measured(cell, run),
            "bytes_per_document": _bytes(cell, stored),
            "milliseconds": {"search": asdict(search), "encode": encode and asdict(encode)},
            "provenance": provenance(self.command),
        }
        self.store.write_result(cell.key, result)
        return self.store.read_result(cell.key)

    def _measures(self, cell: Cell) -> list[str]:
        judged = self.plan.collections[cell.collection]
        return list(dict.fromkeys(self.plan.grid.measures_for(judged.entry).values()))

    def _measured(self, cell: Cell, run: Run) -> dict[str, Any]:
        qrels = self.plan.collections[cell.collection].qrels
        report = evaluate(run, qrels, self._measures(cell))
        return {
            "values": dict(report.measures),
            "queries": len(next(iter(report.per_query.values()))),
            "without_results": len(report.missing),
            "provenance": provenance(self.command),
        }


def _bytes(cell: Cell, info: Mapping[str, Any]) -> dict[str, Any]:
    """Bytes per document of the parts that the workflow reads, of the texts, and of the whole index."""
    stored = {name: found["bytes"] for name, found in info["sets"].items()}
    stored[LEXICAL] = info["bytes_by_purpose"].get(LEXICAL, 0)
    sizes = {part: stored[part] / info["documents"] for part in cell.parts}
    return {
        "parts": sizes,
        "read": sum(sizes.values()),
        "texts": info["bytes_by_purpose"]["documents"] / info["documents"],
        "whole_index": info["bytes_per_document"],
    }
