"""Report on vector sets: sentences with their numbers, and all numbers as a table."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from counterpoint.cli.diagnosis.advice import fit_command, whitening_text
from counterpoint.cli.diagnosis.delta import unclear
from counterpoint.cli.tables import text_table
from counterpoint.escapes import escaped

__all__ = ["alignment_sentence", "sets_text"]

WIDTH = 110
INDENT = " " * 18  # of answers, after their questions
COLUMNS = ("rows", "dimension", "cosine", "partition", "iso_score", "spread", "rank")
COLUMNS += ("entropy_rank", "first_share")
NAMES = {"partition": "I(W)", "iso_score": "IsoScore"}  # of columns with other names than their keys

# Our own thresholds, from no paper; the numbers are printed with the answers.
CONE, SLIGHT = 0.4, 0.1  # mean cosine from which a space is called a cone, or a slight one
POINT = 0.95  # mean cosine from which it has collapsed
FEW = 0.05  # effective rank, as a share of its maximum, below which few dimensions are used
SHOWN = 5  # outliers named


def sets_text(result: Mapping[str, Any]) -> str:
    """The page: a paragraph for each set, and the table."""
    blocks = [_opening(result)]
    for name, found in result["sets"].items():
        rows = "one vector" if found["pooled"] else "several vectors"
        head = f"{name}: {rows} of {found['document']['dimension']} components per text"
        answers = {
            "A cone?": [_cone(found)],
            "Collapsed?": [_collapse(found)],
            "Outliers?": [_outliers(found)],
            "The two sides?": [f"{_inter_iso(found['inter_iso'])} {_alignment(found)}."],
            "Whitening?": whitening_text(found, result["texts"]["documents"]),
        }
        lines = [escaped(head), *(_answer(question, paragraphs) for question, paragraphs in answers.items())]
        if (command := fit_command(result, name)) is not None:
            lines.append(INDENT + escaped(command))  # in one line of any length, so that it can be copied
        blocks.append("\n".join(lines))
    for name, sizes in result["too_few_rows"].items():
        rows = ", ".join(f"{size:,} of {of}" for of, size in sizes.items())
        blocks.append(escaped(f"{name}: too few rows to measure ({rows})"))
    blocks += [delta] if (delta := _delta_inter_iso(result)) else []
    rows = [
        [name, side, *("–" if found[side][key] is None else found[side][key] for key in COLUMNS)]
        for name, found in result["sets"].items()
        for side in ("query", "document")
    ]
    header = ["set", "side", *(NAMES.get(key, key) for key in COLUMNS)]
    blocks += [text_table(header, rows)] if rows else []
    return "\n\n".join(blocks)


def alignment_sentence(between: Mapping[str, Any]) -> str:
    """A sentence on whether the encoders of both sides map queries to the same place."""
    from counterpoint.learn import AlignmentStop  # torch is loaded by now

    if between["kl"] is None and between["coincident"]:
        return (
            f"KL of the sides on queries cannot be estimated: {between['coincident']:,} of "
            f"{between['compared']:,} rows coincide with another"
        )
    if between["kl"] is None:
        return "Both sides encode queries to the same vectors, so there is nothing to align"
    matches = between["room"] >= AlignmentStop.least_match
    aligned = "aligned" if between["kl"] < between["delta"] and matches else "not aligned"
    apart = "" if matches else f", as the query side has {between['room']:.0%} of the document side's spread"
    left_out = f" without {between['coincident']:,} rows that coincide" if between["coincident"] else ""
    return (
        f"KL of the sides on queries{left_out} is {between['kl']:.1f}, δ {between['delta']:.1f}: "
        f"{aligned}{apart}"
    )


def _alignment(found: Mapping[str, Any]) -> str:
    if found["weighed"]:
        return "Rows are weighted differently on each side, so the alignment of the sides is not measured"
    return alignment_sentence(found["between"])


def _answer(question: str, paragraphs: Sequence[str]) -> str:
    indents = [f"  {question:<15} ", *[INDENT] * (len(paragraphs) - 1)]
    return "\n".join(
        textwrap.fill(
            escaped(text), WIDTH, initial_indent=first, subsequent_indent=INDENT, break_on_hyphens=False
        )
        for first, text in zip(indents, paragraphs, strict=True)
    )


def _opening(result: Mapping[str, Any]) -> str:
    texts, names = result["texts"], escaped(f"{result['model']} on {result['collection']}")
    return textwrap.fill(
        f"{names}: {texts['queries']:,} queries, {texts['documents']:,} "
        f"documents drawn from all, {texts['pairs']:,} pairs ({texts['from']})",
        WIDTH,
        break_long_words=False,
    )


def _cone(found: Mapping[str, Any]) -> str:
    query, document = found["query"], found["document"]
    most = max(query["cosine"], document["cosine"])
    answer = "Yes." if most >= CONE else "Slightly." if most >= SLIGHT else "No."
    text = (
        f"{answer} Two rows of documents have cosine {document['cosine']:.2f} on average, two of queries "
        f"{query['cosine']:.2f} (0: no preferred direction, 1: a single one). I(W) of "
        f"both signs is {document['partition']:.2f} and {query['partition']:.2f} (1: no preferred direction)."
    )
    if document["iso_score"] is not None:
        text += (
            f" IsoScore is {document['iso_score']:.2f} and {query['iso_score']:.2f} (1: the variance around "
            "the mean is equal in all dimensions)."
        )
    return text


def _collapse(found: Mapping[str, Any]) -> str:
    sides = {"documents": found["document"], "queries": found["query"]}
    bound = {name: min(side["dimension"], side["rows"] - 1) for name, side in sides.items()}
    point = [name for name, side in sides.items() if side["cosine"] >= POINT]
    few = [name for name, side in sides.items() if side["rank"] < FEW * bound[name]]
    numbers = ", ".join(
        f"of the {name} {side['rank']:.0f} (at most {bound[name]}; {side['first_share']:.0%} of their "
        "variance is in one direction)"
        for name, side in sides.items()
    )
    if point:
        answer = f"Yes: the {' and the '.join(point)} are nearly one point."
    elif few:
        answer = f"In part: the {' and the '.join(few)} use few dimensions."
    else:
        answer = "No."
    return f"{answer} The effective rank is {numbers}."


def _outliers(found: Mapping[str, Any]) -> str:
    """Outliers of the documents, with their share of the mean cosine if that is large enough."""
    document = found["document"]
    outliers: Sequence[Mapping[str, Any]] = document["outliers"]
    if not outliers:
        return (
            "None: no component of the documents is over 3 standard deviations larger than the average one."
        )
    shown = ", ".join(f"{outlier['dimension']} ({outlier['deviations']:.1f})" for outlier in outliers[:SHOWN])
    more = f" and {len(outliers) - SHOWN} more" if len(outliers) > SHOWN else ""
    text = (
        f"{len(outliers)} of {document['dimension']} components of the documents are over 3 standard "
        f"deviations larger than the average one: {shown}{more}."
    )
    if document["cosine"] >= SLIGHT:
        together = sum(outlier["cosine_part"] for outlier in outliers)
        text += f" They make {together / document['cosine']:.0%} of the mean cosine."
    return text


def _inter_iso(found: Mapping[str, Any]) -> str:
    if found["together"] is None:
        return "No pair of texts is known to belong together."
    other = "" if found["other"] is None else f", other queries and documents {found['other']:.2f}"
    return f"{found['pairs']:,} pairs ({found['from']}) have InterIso {found['together']:.2f}{other}."


def _delta_inter_iso(result: Mapping[str, Any]) -> str:
    """ΔInterIso with its sign and pairs, or the options it lacks if two sets could have one; else empty."""
    found = result.get("delta_inter_iso")
    if found is None:
        many = unclear(result["sets"])
        text = f"ΔInterIso: say which of {', '.join(many)} is anisotropic (--high) and which is not (--low)"
        return textwrap.fill(escaped(text), WIDTH, break_on_hyphens=False) if many else ""
    text = f"ΔInterIso = InterIso of {found['high']} − of {found['low']} = {_of_pairs(found)}"
    if found["judged"] is not None:
        text += f"; {_of_pairs(found['judged'])}"
    return textwrap.fill(escaped(f"{text}."), WIDTH, break_on_hyphens=False)


def _of_pairs(found: Mapping[str, Any]) -> str:
    if found["delta"] is None:
        return f"not known without pairs ({found['from']})"
    value = f"{found['delta']:.2f}".replace("-", "−")
    return f"{value} over {found['pairs']:,} pairs ({found['from']})"
