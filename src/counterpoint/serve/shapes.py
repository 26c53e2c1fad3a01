"""Bodies of requests. Unknown names are refused, as everywhere in this package."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from counterpoint.library.options import SearchOptions

__all__ = [
    "AddBody",
    "Asked",
    "DeleteBody",
    "EmbeddingsBody",
    "EncodeBody",
    "RerankBody",
    "RerankTextsBody",
    "RunBody",
    "SearchBody",
]

Text = Annotated[str, Field(min_length=1)]
DEFAULTS = SearchOptions()


class Body(BaseModel):
    """Base of all bodies."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Asked(Body):
    """How to search; see `counterpoint.library.options.SearchOptions`, which has the defaults."""

    k: Annotated[int, Field(ge=1)] = DEFAULTS.k
    workflow: Literal["hybrid", "lexical", "dense", "words", "dense-words", "words-dense"] = "hybrid"
    weights: str | dict[str, float] | None = None
    adapt: bool | None = None
    fusion: str | None = None
    feedback: str | float | None = None
    exhaustive: bool = DEFAULTS.exhaustive
    probes: Annotated[int, Field(ge=1)] | None = None
    where: str | None = None

    def options(self, explain: bool = False) -> SearchOptions:
        """The same for the library."""
        named = {name: getattr(self, name) for name in Asked.model_fields}
        return SearchOptions(**named, explain=explain)


class SearchBody(Asked):
    """One query or several."""

    query: str | Annotated[list[str], Field(min_length=1)]
    explain: bool = DEFAULTS.explain


class RunBody(Asked):
    """Queries by id. A blank query finds nothing."""

    queries: Annotated[dict[str, str], Field(min_length=1)]


class RerankBody(Asked):
    """Rank given documents of the index."""

    query: Text
    ids: Annotated[list[str], Field(min_length=1)]


class EncodeBody(Body):
    """Texts to encode with the model of the index."""

    texts: Annotated[list[Text], Field(min_length=1)]
    sets: list[str] | None = None


class AddBody(Body):
    """Documents to add, or to replace those with the same ids."""

    documents: Annotated[list[dict[str, Any]], Field(min_length=1)]
    replace: bool = False


class DeleteBody(Body):
    """Documents to delete: by id, or by a condition on their metadata."""

    ids: list[str] | None = None
    where: str | None = None
    missing_ok: bool = False


class EmbeddingsBody(BaseModel):
    """As OpenAI's clients send it. Names that mean nothing here are ignored."""

    input: Text | Annotated[list[Text], Field(min_length=1)]
    model: str
    encoding_format: Literal["float", "base64"] = "float"


class GivenText(BaseModel):
    """A document as Cohere's clients send it. Only its text is read."""

    text: str


class RerankTextsBody(BaseModel):
    """As Cohere's clients send it. Limits on tokens and chunks are ignored."""

    model: str
    query: Text
    documents: Annotated[list[str | GivenText], Field(min_length=1)]
    top_n: Annotated[int, Field(ge=1)] | None = None
    return_documents: bool = False
    rank_fields: list[Literal["text"]] | None = None
