"""What processes of `changes.py` found as figures, as two tables, and as a plot of latency over time."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from engine_table import filled

WIDTH = 36
CHANGES = (
    ("docs/s", 8, "{documents_a_second:,.0f}"),
    ("add 100", 15, "{batches_p50:.0f} / {batches_p95:.0f}"),
    ("its CPU", 9, "{batches_cpu_p50:.0f}"),
    ("seen", 15, "{batches_seen_p50:.0f} / {batches_seen_p95:.0f}"),
    ("add 1", 15, "{singles_p50:.0f} / {singles_p95:.0f}"),
    ("seen", 7, "{singles_seen_p50:.0f}"),
    ("delete 100", 15, "{deletes_p50:.0f} / {deletes_p95:.0f}"),
    ("seen", 7, "{deletes_seen_p50:.0f}"),
    ("not seen", 9, "{unseen}"),
    ("merging s", 10, "{merging_s:.1f}"),
)
SEARCHES = (
    ("quiet p50 / p99", 19, "{quiet_p50:.1f} / {quiet_p99:.1f}"),
    ("writing p50 / p99", 19, "{writing_p50:.1f} / {writing_p99:.1f}"),
    ("p99", 6, "{p99_ratio:.1f}x"),
    ("CPU p99", 8, "{p99_cpu_ratio:.1f}x"),
    ("n", 14, "{quiet_n} / {writing_n}"),
    ("failed", 7, "{failed}"),
    ("MB full", 9, "{mb_full:.1f}"),
    ("halved", 8, "{mb_deleted:.1f}"),
    ("compacted", 10, "{mb_compacted:.1f}"),
    ("in s", 7, "{compact_s:.1f}"),
    ("R@10", 15, "{recall_deleted:.3f} / {recall_compacted:.3f}"),
    ("wrong", 8, "{wrong_deleted} / {wrong_compacted}"),
)


def figures(found: dict[str, Any]) -> dict[str, Any]:
    """Figures of what the processes of one system found, times in milliseconds of wall time but for "cpu"."""
    row: dict[str, Any] = {"versions": found["check"]["versions"], "build_s": found["build"]["build"][1]}
    unseen = merging = 0
    for phase in ("batches", "singles", "deletes"):
        commits = found["change"][phase]
        cpu, wall = 1000 * np.array([each["commit"] for each in commits]).T
        seen = [1000 * each["seen"] for each in commits if each["seen"] is not None]
        unseen += len(commits) - len(seen)
        merging += sum(each["tidy"][1] for each in commits)
        row |= spread(phase, wall) | spread(f"{phase}_cpu", cpu) | spread(f"{phase}_seen", seen)
    row |= {"unseen": unseen, "merging_s": merging, "documents_a_second": rate(found)}
    row |= searches(found["rounds"])
    halved = found["halve"]
    row |= {f"mb_{when}": halved[f"bytes_{when}"] / 1e6 for when in ("full", "deleted", "compacted")}
    return row | {"halving_s": halved["delete"][1], "compact_s": halved["compact"][1]}


def searches(found: dict[str, Any]) -> dict[str, Any]:
    """What a reader found while there was a writer; `reader` says why there is nothing."""
    if "outcome" in found:
        return {"reader": found["outcome"]}
    faults, row = Counter(said for _, said in found["faults"]), {}
    for phase in ("quiet", "writing"):
        times = 1000 * np.array(found[phase]).reshape(-1, 4)
        row |= spread(phase, times[:, 1]) | spread(f"{phase}_cpu", times[:, 2]) | {f"{phase}_n": len(times)}
        row |= spread(f"{phase}_refresh", times[times[:, 3] > 0, 3])
    row["p99_ratio"] = row["writing_p99"] / row["quiet_p99"]
    row["p99_cpu_ratio"] = row["writing_cpu_p99"] / row["quiet_cpu_p99"]
    row |= {"failed": sum(faults.values()), "faults": dict(faults)}
    return row | {"timeline": {name: found[name] for name in ("quiet", "writing", "actions")}}


def rate(found: dict[str, Any]) -> float:
    """Documents a second that are added in batches, merges included."""
    spent = sum(each["commit"][1] + each["tidy"][1] for each in found["change"]["batches"])
    return found["change"]["documents"] / spent


def spread(name: str, times: Iterable[float]) -> dict[str, float]:
    """p50, p95 and p99; none of no times."""
    times = list(times)
    return {f"{name}_p{p}": float(np.percentile(times, p)) for p in (50, 95, 99)} if times else {}


def print_tables(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print the changes of each row as it comes, and searches and sizes of all when they are there."""
    kept = []
    for row in rows:
        if not kept:
            print(f"\n{row['collection']}, {row['documents']:,} documents at first; ms, p50 / p95")
            print(heading(CHANGES))
        print(line_of(row, CHANGES), flush=True)
        kept.append(row)
    if kept:
        print(f"\n{heading(SEARCHES)}")
    for row in kept:
        print(line_of(row, SEARCHES))
        if "reader" in row:
            print(f"{'':{WIDTH}}  its reader: {row['reader']}")
    return kept


def heading(columns) -> str:
    return f"{'':{WIDTH}}{''.join(f'{name:>{width}}' for name, width, _ in columns)}"


def line_of(row: dict[str, Any], columns) -> str:
    if "outcome" in row:
        return f"{row['system']:{WIDTH}}  {row['outcome']}"
    return f"{row['system']:{WIDTH}}" + "".join(f"{filled(form, row):>{width}}" for _, width, form in columns)


def save_plot(row: dict[str, Any], path: Path) -> None:
    """Latency of each search over time, with what the writer does."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    timeline = row["timeline"]
    times = np.array([*timeline["quiet"], *timeline["writing"]])
    began, colours = times[0, 0], {"add": "C1", "delete": "C2", "merge": "C4", "compact": "C3"}
    figure, axes = plt.subplots(figsize=(11, 5))
    axes.scatter(times[:, 0] - began, 1000 * times[:, 1], s=4, label="search")
    shown = set()
    for name, start, end in timeline["actions"]:
        label = None if name in shown else name
        shown.add(name)
        axes.axvspan(
            start - began, max(end, start + 0.01) - began, color=colours[name], alpha=0.3, label=label
        )
    for phase in ("quiet", "writing"):
        some = np.array(timeline[phase])[:, 0] - began
        axes.hlines(row[f"{phase}_p99"], some[0], some[-1], "k", "--", label=f"p99 {phase}")
    title = f"{row['system']}, {row['documents']:,} documents"
    axes.set(title=title, yscale="log", xlabel="seconds", ylabel="ms a search (wall)")
    axes.legend(fontsize="small", loc="upper left")
    figure.savefig(path, bbox_inches="tight")
    plt.close(figure)
