"""The rows of `engine.py` as a table, and as a plot of latency by the number of documents."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

WIDTH = 46
COLUMNS = (
    ("build s", 9, "{build_cpu_s:.1f}"),
    ("B/doc", 9, "{bytes_a_document:,.0f}"),
    ("open ms", 9, "{opening_cpu_ms:.0f}"),
    ("MB", 7, "{own_memory:,.0f}"),
    ("all MB", 8, "{memory:,.0f}"),
    ("CPU ms", 18, "{cpu_p50_ms:.2f} / {cpu_p95_ms:.2f}"),
    ("again", 16, "{again_cpu_p50_ms:.2f} / {again_cpu_p95_ms:.2f}"),
    ("wall ms", 18, "{wall_p50_ms:.2f} / {wall_p95_ms:.2f}"),
    ("CPU with encoding", 19, "{encoding_cpu_p50_ms:.2f} / {encoding_cpu_p95_ms:.2f}"),
    ("R@10", 7, "{recall@10:.3f}"),
    ("R@100", 7, "{recall@100:.3f}"),
    ("nDCG@10", 9, "{nDCG@10:.3f}"),
    ("n", 5, "{queries}"),
)


def print_table(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print each row as it comes, under a heading of its collection and kind."""
    kept, heading = [], None
    for row in rows:
        of = f"{row['collection']}, {row['documents']:,} documents: {row['kind']}"
        if of != heading:
            print(f"\n{of}\n{'':{WIDTH}}{''.join(f'{name:>{width}}' for name, width, _ in COLUMNS)}")
            heading = of
        print(line_of(row), flush=True)
        kept.append(row)
    return kept


def line_of(row: dict[str, Any]) -> str:
    name = ", ".join(filter(None, (row["system"], row.get("search"))))
    if "outcome" in row:
        return f"{name:{WIDTH}}  {row['outcome']}"
    return f"{name:{WIDTH}}" + "".join(f"{filled(form, row):>{width}}" for _, width, form in COLUMNS)


def filled(form: str, row: dict[str, Any]) -> str:
    try:
        return form.format_map(row)
    except KeyError:  # what does not apply, such as recall where nothing is exact
        return "-"


def print_encoding(rows: list[dict[str, Any]]) -> None:
    """How much of a build was not the encoder's, for systems that encode documents."""
    for row in rows:
        if "encoding_cpu_s" in row:
            rest = row["build_cpu_s"] - row["encoding_cpu_s"]
            share = f"{rest:.1f} s, {rest / row['build_cpu_s']:.1%}"
            print(f"{row['system']}: building took {share} in addition to the encoder")


def print_roofline(rows: list[dict[str, Any]]) -> None:
    """What the hardware would need for late interaction over every document, next to what systems took."""
    every = [row for row in rows if row["kind"] == "tokens" and row.get("search") == "every document"]
    if not every:
        return
    from kernels import bandwidth, int8_peak, said_of

    peak, memory = int8_peak(), bandwidth()
    print(f"\nint8 products {said_of(peak)}, reading memory {memory:.1f} GB/s")
    for row in every:
        operations = 2 * row["vectors"] * row["query_rows"] * row["components"]
        products = peak and operations / peak / 1e6
        reading = row["bytes_a_document"] * row["documents"] / memory / 1e6
        row |= {"products_ms": products, "reading_ms": reading}
        computing = f" in {products:.2f} ms" if products else ""
        print(
            f"{row['system']:{WIDTH}} {operations / 1e9:.2f} GOP{computing}, "
            f"{row['bytes_a_document'] * row['documents'] / 1e6:,.0f} MB in {reading:.2f} ms; took "
            f"{row['cpu_p50_ms']:.2f}, {max(products or 0, reading) / row['cpu_p50_ms']:.0%} of what binds"
        )


def save_plot(rows: list[dict[str, Any]], path: Path) -> None:
    """p50 of CPU time against documents, a line for each search that was measured at two sizes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    lines: dict[str, dict[int, float]] = {}
    for row in rows:
        if "cpu_p50_ms" in row and row["kind"] != "encoding":
            name = ", ".join(filter(None, (row["system"], row["search"])))
            lines.setdefault(name, {})[row["documents"]] = row["cpu_p50_ms"]
    figure, axes = plt.subplots(figsize=(9, 6))
    for name, points in lines.items():
        if len(points) > 1:
            axes.plot(sorted(points), [points[x] for x in sorted(points)], marker="o", label=name)
    axes.set(xscale="log", yscale="log", xlabel="documents", ylabel="ms a query (CPU, p50)")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path, bbox_inches="tight")
    plt.close(figure)
