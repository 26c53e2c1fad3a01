"""Advice on whitening: the measures in words, and the rule of docs/isotropy.md, "When to whiten"."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Literal

__all__ = ["Advice", "advice", "fit_command", "whitening_text"]

Advice = Literal["leave", "half", "whole"]

CONE = 0.3  # mean cosine below which the rule advises no whitening
SURE = 0.05  # p-value below which a difference of rankings counts


def advice(found: Mapping[str, Any]) -> Advice:
    """Apply the rule to the measures of a set's sides and of its `whitening`."""
    whitening = found["whitening"]
    whole, half = whitening["ranking"], whitening["half"]["ranking"]
    enough = whitening["fitted"] >= whitening["enough"]
    if _narrowest(found) < CONE or (enough and _verdict(half) == "worse"):
        return "leave"
    # If neither map ranks worse, take the better one, and half the way if that is not known.
    if enough and whole is not None and whole["difference"] >= max(0, half["difference"]):
        return "whole"
    return "half"


def whitening_text(found: Mapping[str, Any], documents: int) -> list[str]:
    """Paragraphs: how it was measured, both maps on held-out documents, and the advice.

    Args:
        found: measures of a set.
        documents: number of documents drawn, to suggest a larger sample.
    """
    whitening = found["whitening"]
    if "refused" in whitening:
        return [f"Not possible here: {whitening['refused']}."]
    before = whitening["before"]
    return [
        _how(found, documents),
        f"Half the way: {_change(before, whitening['half'])}",
        f"The whole way: {_change(before, whitening)}",
        _recommended(found),
    ]


def fit_command(result: Mapping[str, Any], name: str) -> str | None:
    """The command that carries out the advice for a set; None if the advice is to leave it.

    With several sets, each command starts from the output of the previous one.
    """
    mapped = [other for other, found in result["sets"].items() if _recommendation(found) != "leave"]
    if name not in mapped:
        return None
    at, found = mapped.index(name), result["sets"][name]
    model, output = result["model"], "white"
    if len(mapped) > 1:
        output = f"white-{name}"
        model = f"white-{mapped[at - 1]}" if at else model
    scaled = ["--power", str(found["whitening"]["half"]["power"])] if _recommendation(found) == "half" else []
    words = ["counterpoint", "fit", "whitening", model, result["collection"], "-o", output]
    return shlex.join([*words, *scaled, "--on", name])


def _recommendation(found: Mapping[str, Any]) -> Advice:
    return found["whitening"].get("advice", "leave")


def _how(found: Mapping[str, Any], documents: int) -> str:
    """What the maps were fitted on and measured with, and whether that is enough."""
    whitening = found["whitening"]
    fitted, enough, ranking = (whitening[key] for key in ("fitted", "enough", "ranking"))
    text = (
        f"Fitted on {fitted:,} rows of one half of the documents, measured on {whitening['rows']:,} of the "
        "other"
    )
    if ranking is not None:
        text += (
            f"; {ranking['measure']} is over {ranking['queries']:,} queries that rank the "
            f"{ranking['documents']:,} documents of that half by cosine"
        )
    if fitted >= enough:
        return f"{text}."
    times = -(-enough * documents // fitted)
    return (
        f"{text}. {fitted:,} rows are too few for {found['document']['dimension']} directions; {enough:,} "
        f"would do (about --sample {times}, if there are so many). So the whole way is more noise than "
        "whitening, and half the way contains some noise."
    )


def _recommended(found: Mapping[str, Any]) -> str:
    whitening = found["whitening"]
    recommended, whole, half = whitening["advice"], whitening["ranking"], whitening["half"]["ranking"]
    if (cosine := _narrowest(found)) < CONE:
        return (
            f"Leave it: the mean cosine, {found['document']['cosine']:.3f} of documents and "
            f"{found['query']['cosine']:.3f} of queries, is below {CONE}, so there is no cone to remove."
        )
    cone = f"the mean cosine, {cosine:.3f}, is not below {CONE}"
    if recommended == "leave":
        return f"Leave it, or only centre it (--power 0): {cone}, but even half the way ranks worse."
    if recommended == "whole":
        return f"Go the whole way: {cone}, the rows suffice, and {whole['measure']} does not fall:"
    if whitening["fitted"] < whitening["enough"]:
        rest = "the whole way needs more rows"
    elif whole is None:
        rest = "the effect of the whole way on a ranking is not known here"
    elif whole["difference"] < 0:
        rest = f"the whole way loses {whole['measure']}"
    else:
        rest = "the whole way gains less"
    text = f"Go half the way: {cone}, and {rest}."
    if _verdict(half) == "worse":  # with too few rows: with enough, the advice is to leave it
        text += (
            " On so few rows, that ranks worse, too: only centre it (--power 0), or fit it on more rows "
            "and evaluate it first."
        )
    return f"{text[:-1]}:"


def _narrowest(found: Mapping[str, Any]) -> float:
    """The mean cosine of the narrower side, as in the answer about a cone."""
    return max(found["query"]["cosine"], found["document"]["cosine"])


def _change(before: Mapping[str, Any], mapped: Mapping[str, Any]) -> str:
    """A map's measures before and after, and the difference of rankings with its interval."""
    after, ranking = mapped["after"], mapped["ranking"]
    text = ", ".join(
        f"{name} {before[key]:.2f} → {after[key]:.2f}"
        for key, name in (("cosine", "cosine"), ("partition", "I(W)"), ("iso_score", "IsoScore"))
        if before[key] is not None
    )
    if ranking is None:
        return f"{text}."
    low, high = ranking["interval"]
    change = f"{ranking['difference']:+.3f} [{low:+.3f}, {high:+.3f}]".replace("-", "−")
    verdict = _verdict(ranking) or "not significant with so few queries"
    return (
        f"{text}, {ranking['measure']} {ranking['before']:.3f} → {ranking['after']:.3f}: {change}, {verdict}."
    )


def _verdict(ranking: Mapping[str, Any] | None) -> str | None:
    """`better` or `worse`; None if the difference is not significant, or there is no ranking."""
    if ranking is None or ranking["p_value"] >= SURE:
        return None
    return "better" if ranking["difference"] > 0 else "worse"
