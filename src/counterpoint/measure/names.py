"""Names of measures: those of ir_measures (`nDCG@10`, `AP(rel=2)@100`), in any case, and of trec_eval."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from counterpoint.errors import ConfigError

if TYPE_CHECKING:
    from ir_measures import Measure
    from ir_measures.measures import ParamInfo

__all__ = ["HIGHEST_GRADE", "depth_of", "known_measures", "parse_measure", "with_values"]

HIGHEST_GRADE = 10_000
"""For every query, trec_eval keeps a table as long as the highest grade."""

TREC_NAMES = MappingProxyType(
    {
        "ndcg_cut": "nDCG",
        "map_cut": "AP",
        "recip_rank": "RR",
        "iprec_at_recall": "IPrec",
        "num_q": "NumQ",
        "num_rel": "NumRel",
        "num_ret": "NumRet",
        "num_rel_ret": "NumRelRet",
        "set_p": "SetP",
        "set_recall": "SetR",
        "set_f": "SetF",
        "set_map": "SetAP",
        "set_relative_p": "SetRelP",
    }
)
"""trec_eval's names that differ from those of ir_measures by more than case (`map` and `P` do not)."""

KINDS = MappingProxyType(
    {
        "cutoff": "a positive whole number",
        "rel": "a positive whole number",
        "recall": "a number from 0 to 1 with at most two digits after the point",
        "gains": "a mapping from grades to whole numbers from 0 up",
        "int": "a whole number",
        "float": "a number",
        "bool": "True or False",
        "str": "a known name",
    }
)
"""Valid values of a setting, by its name or else by its type."""
MODERN = re.compile(r"(?P<name>\w+)(\((?P<settings>.*)\))?(@(?P<at>.+))?")
TREC = re.compile(r"(?P<name>\w+?)[_.](?P<at>\d+(\.\d+)?)")


def parse_measure(text: str) -> Measure:
    """Parse the name of a measure: `nDCG@10`, `ndcg@10` and `ndcg_cut_10` are the same.

    Every measure accepts `judged_only=True`, even if ir_measures does not support it; `evaluate` removes
    unjudged documents itself. Settings print in the order in which the measure lists them.

    Raises:
        ConfigError: an unknown measure, with a suggestion, or a setting that it does not have.
    """
    names = _known_names()
    for pattern in (MODERN, TREC):
        match = pattern.fullmatch(text.strip())
        if match and match["name"].casefold() in names:
            return _with_settings(names[match["name"].casefold()], match.groupdict(), text)
    base = re.split(r"[_.]\d|\W", text.strip())[0]
    tail = text.strip()[len(base) :]
    close = difflib.get_close_matches(base.casefold(), names, n=1)
    hint = "well-known ones are nDCG@10, R@100, RR@10, AP"
    if close:
        found = names[close[0]]
        shown = f"{found}{tail}" if tail.startswith("@") else _shown(found)
        hint = f"did you mean '{shown}'?"
    raise ConfigError(f"unknown measure {text!r}; {hint}")


def depth_of(measures: Sequence[str], deep: int) -> int:
    """Documents per query that measures need: the largest cutoff, or `deep` if one has none.

    A condensed list is cut after unjudged documents are removed, so its run must be deep.
    """
    settings = [dict(parse_measure(name).params) for name in measures]
    needed = (deep if found.get("judged_only") else int(found.get("cutoff") or deep) for found in settings)
    return max(needed, default=deep)


def known_measures() -> list[str]:
    """All measures as they are typed, each once, with a cutoff where one is needed."""
    from ir_measures.measures import registry

    return [_shown(measure) for measure in registry.values()]


def _known_names() -> dict[str, Measure]:
    from ir_measures.measures import registry

    return {name.casefold(): measure for name, measure in registry.items()} | {
        name: registry[ours] for name, ours in TREC_NAMES.items()
    }


def _shown(measure: Measure) -> str:
    needs = measure.SUPPORTED_PARAMS.get(measure.AT_PARAM)
    example = {"cutoff": "@10", "recall": "@0.5"}[measure.AT_PARAM] if needs and needs.required else ""
    return f"{measure}{example}"


def _with_settings(measure: Measure, found: dict[str, str | None], text: str) -> Measure:
    """The measure with the settings in its brackets and after its @, checked one by one.

    ir_measures checks with assertions, which `python -O` removes.
    """
    takes = _takes(measure)
    values = _settings(found.get("settings") or "", text)
    if found["at"] is not None:
        values[measure.AT_PARAM] = _literal(found["at"], text)
    faults = []
    for name, value in values.items():
        known = takes.get(name)
        if known is None:
            faults.append(f"measure {text!r}: {measure} has no {name!r}; it takes {', '.join(takes)}")
            continue
        if known.dtype is float and type(value) is int:
            values[name] = value = float(value)
        if type(value) is not known.dtype or not known.validate(value) or not _sensible(name, value):
            kind = KINDS.get(name) or KINDS.get(getattr(known.dtype, "__name__", ""), "another value")
            faults.append(f"measure {text!r}: {name} must be {kind}, found {value!r}")
    for name, known in takes.items():
        if known.required and name not in {**measure.params, **values}:
            example = _shown(measure) if name == measure.AT_PARAM else f"{name}=…"
            faults.append(f"measure {text!r}: {name} is missing; write {example}")
    if faults:
        raise ConfigError(*faults)
    return with_values(measure, values)


def with_values(measure: Measure, values: Mapping[str, Any]) -> Measure:
    """The measure with further valid settings, in the order in which it lists them."""
    takes, values = _takes(measure), {**measure.params, **values}
    made = type(measure)(**{name: values[name] for name in takes if name in values})
    # Only of this object: a measure prints and compares the settings that are listed here.
    made.SUPPORTED_PARAMS = takes
    return made


def _takes(measure: Measure) -> dict[str, ParamInfo]:
    from ir_measures.measures import registry

    return {**measure.SUPPORTED_PARAMS, "judged_only": registry["AP"].SUPPORTED_PARAMS["judged_only"]}


def _sensible(name: str, value: Any) -> bool:
    """Whether trec_eval's C code accepts this value."""
    if name in ("cutoff", "rel"):
        return 1 <= value < 2**31
    if name == "recall":  # trec_eval and pytrec-eval distinguish levels by two digits
        return 0 <= value <= 1 and value == round(value, 2)
    if name == "gains":
        return all(
            type(grade) is type(gain) is int and 0 <= gain <= HIGHEST_GRADE for grade, gain in value.items()
        )
    return True


def _settings(text: str, whole: str) -> dict[str, Any]:
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except SyntaxError:
        call = None
    if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
        raise ConfigError(f"measure {whole!r}: expected settings such as (rel=2), found ({text})")
    return {str(word.arg): _literal(ast.unparse(word.value), whole) for word in call.keywords}


def _literal(text: str, whole: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise ConfigError(
            f"measure {whole!r}: expected a number or another plain value, found {text!r}"
        ) from None
