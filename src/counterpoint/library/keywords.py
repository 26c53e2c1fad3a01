"""Keyword settings of `index` and `OpenIndex`, so that editors and notebooks show their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from counterpoint.errors import ConfigError
from counterpoint.library.options import AddOptions, BuildOptions, SearchOptions
from counterpoint.suggestion import suggestion

if TYPE_CHECKING:
    from counterpoint.index import CodecChoice
    from counterpoint.index.field import Expression
    from counterpoint.search import Workflow

__all__ = ["AddKeywords", "BuildKeywords", "RunKeywords", "SearchKeywords", "check_keywords", "with_names"]

Function = TypeVar("Function", bound=Callable[..., Any])


class BuildKeywords(TypedDict, total=False):
    """Keywords of `index`; see `BuildOptions`."""

    codec: CodecChoice | None
    gate: float | None
    ann: Literal["hnsw"] | None
    pool_factor: float | None
    lexical: bool | None
    analyzer: Literal["english", "english-long", "simple", "none"] | None
    identifiers: bool | None
    k1: float | None
    b: float | None
    passage_words: int | None
    lenient: bool | None
    overwrite: bool
    resume: bool
    processes: int | None
    ray: str | None
    shards: int | None
    vectors: bool | None
    id: str | None
    title: str | None
    text: str | None
    metadata: str | Sequence[str] | None
    include: str | Sequence[str] | None
    exclude: str | Sequence[str] | None
    gitignore: bool


class AddKeywords(TypedDict, total=False):
    """Keywords of `OpenIndex.add`; see `AddOptions`."""

    replace: bool
    passage_words: int | None
    lenient: bool | None
    id: str | None
    title: str | None
    text: str | None
    include: str | Sequence[str] | None
    exclude: str | Sequence[str] | None
    gitignore: bool


class RunKeywords(TypedDict, total=False):
    """Keywords of `OpenIndex.run`; see `SearchOptions`."""

    workflow: Workflow
    weights: str | Mapping[str, float] | None
    adapt: bool | None
    fusion: str | None
    feedback: str | float | tuple[float, int] | None
    exhaustive: bool
    probes: int | None
    where: str | Expression | None


class SearchKeywords(RunKeywords, total=False):
    """Keywords of `OpenIndex.search`; see `SearchOptions`."""

    explain: bool


DEFAULTS: Mapping[str, Any] = {**vars(AddOptions()), **vars(SearchOptions()), **vars(BuildOptions())}


def with_names(keywords: type) -> Callable[[Function], Function]:
    """Show a call's settings one by one in its signature instead of `**settings`.

    Type checkers read `Unpack`; `help`, notebooks and `inspect` read signatures.
    """

    def show(function: Function) -> Function:
        kept = signature(function)
        named = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=DEFAULTS.get(name),
                annotation=getattr(hint, "__forward_arg__", str(hint)),
            )
            for name, hint in keywords.__annotations__.items()
        ]
        others = [one for one in kept.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        shown = Signature([*others, *named], return_annotation=kept.return_annotation)
        function.__signature__ = shown  # type: ignore[attr-defined]
        return function

    return show


def check_keywords(given: Mapping[str, Any], *known: str) -> None:
    """Refuse an unknown setting.

    Raises:
        ConfigError: a name is unknown; names the known settings and the most similar one.
    """
    for name in given:
        if name not in known:
            expected = f"unknown setting {name!r}; expected {', '.join(known)}"
            raise ConfigError("; ".join(filter(None, (expected, suggestion(name, known)))))
