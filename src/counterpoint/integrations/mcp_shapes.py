"""What the tools of `mcp_server` take and give. Descriptions are read by language models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from counterpoint.errors import MissingExtraError
from counterpoint.library.options import SearchOptions

try:
    from pydantic import BaseModel, Field
except ImportError as error:
    raise MissingExtraError("a server for language models", package="mcp", extra="mcp") from error

__all__ = [
    "MOST",
    "Explained",
    "Found",
    "FoundHit",
    "Id",
    "K",
    "Name",
    "Offset",
    "QueryText",
    "Stretch",
    "Where",
    "WordScore",
    "WorkflowName",
]

MOST = 50  # documents of an answer
LONGEST = 1000  # characters of a query, an id or a name
LONGEST_WHERE = 2000

QueryText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST,
        description="What to look for: a question or keywords, in the language of the documents.",
    ),
]
K = Annotated[int, Field(ge=1, le=MOST, description=f"Number of documents (default {SearchOptions.k}).")]
WorkflowName = Annotated[
    Literal["hybrid", "lexical", "dense"],
    Field(
        description="How to search. hybrid (default) matches words and meaning. lexical matches words only: "
        "choose it for names, codes and error messages. dense matches meaning only."
    ),
]
Where = Annotated[
    str | None,
    Field(
        max_length=LONGEST_WHERE,
        description='Only documents whose metadata meets this condition, such as "year >= 2020 and lang in '
        "('en', 'de') and not draft\". Field names are those of `metadata` in results.",
    ),
]
Name = Annotated[
    str | None,
    Field(max_length=LONGEST, description="Name of the index; not needed if there is only one."),
]
Id = Annotated[
    str, Field(min_length=1, max_length=LONGEST, description="Id of a document, as `search` gave it.")
]
Offset = Annotated[int, Field(ge=0, description="Character to begin at: 0, or a `next_offset`.")]


class Stretch(BaseModel):
    """A stretch of a document's text, or all of it."""

    id: str = Field(description="Give this to `read` or `explain`.")
    title: str
    text: str
    offset: int = Field(description="Where `text` begins in the whole text, in characters.")
    next_offset: int | None = Field(description="Where `read` continues; null if `text` reaches the end.")
    length: int = Field(description="Characters of the whole text.")
    metadata: dict[str, Any]


class FoundHit(Stretch):
    """One document that was found."""

    rank: int = Field(description="1 is the best.")
    score: float = Field(description="Comparable within this answer only.")


class Found(BaseModel):
    """The documents that were found, best first."""

    hits: list[FoundHit]


class WordScore(BaseModel):
    """What one word of the query added to the score."""

    word: str = Field(description="A word; names such as (whole text) or feedback are of no single word.")
    matched: str = Field(description="The word of the document that it matched, or an empty text.")
    score: float


class Explained(BaseModel):
    """Why a document has its score."""

    id: str
    rank: int
    score: float
    parts: dict[str, float] = Field(description="What each way of matching added; they sum to `score`.")
    words: list[WordScore] = Field(description="What each word added; they sum to `score`, too.")
