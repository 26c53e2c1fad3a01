"""Bodies of requests. Unknown names are refused, as everywhere in this package."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from counterpoint.library.options import DEEP, SearchOptions

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
AnyText = Annotated[str, Field(min_length=0)]  # with a limit, half a surrogate pair is refused; it is no text
DEFAULTS = SearchOptions()


class Body(BaseModel):
    """Base of all bodies."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Asked(Body):
    """How to search; see `counterpoint.library.options.SearchOptions`, which has the defaults."""

    workflow: Literal["hybrid", "lexical", "dense", "words", "dense-words", "words-dense"] = "hybrid"
    weights: AnyText | dict[AnyText, float] | None = None
    adapt: bool | None = None
    fusion: AnyText | None = None
    feedback: AnyText | float | None = None
    exhaustive: bool = DEFAULTS.exhaustive
    probes: Annotated[int, Field(ge=1)] | None = None
    where: AnyText | None = None

    def options(self, k: int, explain: bool = False) -> SearchOptions:
        """The same for the library."""
        named = {name: getattr(self, name) for name in Asked.model_fields}
        return SearchOptions(**named, k=k, explain=explain)


class SearchBody(Asked):
    """One query or several."""

    query: AnyText | Annotated[list[AnyText], Field(min_length=1)]
    k: Annotated[int, Field(ge=1)] = DEFAULTS.k
    explain: bool = DEFAULTS.explain


class RunBody(Asked):
    """Queries by id. A blank query finds nothing. `k` is as high as the server allows, up to 1,000."""

    queries: Annotated[dict[AnyText, AnyText], Field(min_length=1)]
    k: Annotated[int, Field(ge=1)] | None = None

    def depth(self, most: int) -> int:
        """How many documents for each query."""
        return min(DEEP, most) if self.k is None else self.k


class RerankBody(Asked):
    """Rank given documents of the index: all, or the best `k`."""

    query: Text
    ids: Annotated[list[AnyText], Field(min_length=1)]
    k: Annotated[int, Field(ge=1)] | None = None


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

    ids: list[AnyText] | None = None
    where: AnyText | None = None
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
