"""`RemoteIndex`: an index on a server, with the calls of an index that is open here."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, Unpack, final
from urllib.parse import quote, urlsplit

from typing_extensions import override

from counterpoint.errors import ArtifactError, ConfigError, DataError, MissingExtraError
from counterpoint.library.keywords import RunKeywords, with_names
from counterpoint.library.options import SearchOptions
from counterpoint.library.searchable import Searchable, options_of

if TYPE_CHECKING:
    from counterpoint.search import Answer, Run

__all__ = ["KEY", "RemoteIndex", "is_address"]

KEY = "COUNTERPOINT_KEY"
"""Environment variable with the key that requests send."""
TOGETHER = 64  # queries or documents per request


def is_address(path: object) -> bool:
    """Whether this is the address of a server, and not a path."""
    return isinstance(path, str) and path.startswith(("http://", "https://"))


@final
class RemoteIndex(Searchable):
    """An index of a server. Searches, changes and answers are those of `OpenIndex`.

    Args:
        address: of the server, `http://host:port`, with `/NAME` if it serves several indexes.
        key: an API key; None for that of the environment variable `COUNTERPOINT_KEY`, if it is set.
        seconds: time to wait for an answer.

    Raises:
        ConfigError: the server has no such index, or several, or wants a key.
        ArtifactError: the server cannot be reached.
        MissingExtraError: httpx is not installed.
    """

    def __init__(self, address: str, key: str | None = None, seconds: float = 60.0):
        try:
            import httpx
        except ImportError as error:
            raise MissingExtraError("a client of a server", package="httpx", extra="serve") from error
        parts = urlsplit(address)
        key = key or os.environ.get(KEY)
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(
            base_url=f"{parts.scheme}://{parts.netloc}", headers=headers, timeout=seconds
        )
        weakref.finalize(self, self._client.close)
        self._fault = httpx.HTTPError
        try:
            self.name = parts.path.strip("/") or self._only_name()
            self._commit = self.info()["commit"]
        except BaseException:
            self.close()
            raise

    @override
    def _answers(self, queries: Sequence[str], options: SearchOptions) -> list[Answer]:
        from counterpoint.search.hits import answer_from

        found: list[Answer] = []
        for at in range(0, len(queries), TOGETHER):
            body = {"query": list(queries[at : at + TOGETHER]), **options.to_dict()}
            found += map(answer_from, self._post("search", body)["answers"])
        return found

    @with_names(RunKeywords)
    def run(self, queries: Mapping[str, str], k: int = 1000, **asked: Unpack[RunKeywords]) -> Run:
        """Rank documents for many queries (id to text); `asked` as for `search`, except `explain`."""
        from counterpoint.search import Run

        options = options_of(k, asked, RunKeywords)
        sent = {name: value for name, value in options.to_dict().items() if name != "explain"}
        names, ranked = list(queries), {}
        for at in range(0, len(names), TOGETHER):
            some = {name: queries[name] for name in names[at : at + TOGETHER]}
            ranked |= self._post("run", {"queries": some, **sent})["results"]
        provenance = {"workflow": options.workflow, "tag": f"counterpoint-{options.workflow}"}
        return Run(ranked, provenance=provenance)

    def add(self, documents: Sequence[Mapping[str, Any]], *, replace: bool = False) -> int:
        """Add documents, `TOGETHER` per commit; return how many.

        Raises:
            ConfigError: documents are not a list, such as the path of a file.
            DataError: an id exists already and `replace` is not set, or a document is malformed.
        """
        if isinstance(documents, str | PathLike) or not all(isinstance(each, Mapping) for each in documents):
            raise ConfigError(
                "documents: expected a list of dictionaries, as a server cannot read your files; "
                "counterpoint.data.open_collection(path).documents() reads them"
            )
        added = 0
        for at in range(0, len(documents), TOGETHER):
            body = {"documents": list(map(dict, documents[at : at + TOGETHER])), "replace": replace}
            added += self._post("documents", body)["added"]
        return added

    def update(self, documents: Sequence[Mapping[str, Any]]) -> int:
        """Add documents, replacing those with the same ids; return how many were added."""
        return self.add(documents, replace=True)

    def delete(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        where: str | None = None,
        missing_ok: bool = False,
    ) -> int:
        """Delete documents in one commit, by ids or by a condition; return how many."""
        named = [ids] if isinstance(ids, str) else None if ids is None else list(ids)
        body = {"ids": named, "where": None if where is None else str(where), "missing_ok": missing_ok}
        return self._asked("DELETE", f"{self._place}/documents", body)["deleted"]

    @override
    def document(self, name: str) -> dict[str, Any]:
        """A document as it was indexed: its `id`, `title`, `text` and `metadata`.

        Raises:
            ConfigError: no document has this id.
        """
        return self._asked("GET", f"{self._place}/documents/{_encoded(name)}")["document"]

    def info(self) -> dict[str, Any]:
        """Contents of the index and its disk usage."""
        return self._asked("GET", self._place)

    @override
    def refresh(self) -> bool:
        """Return whether the index has another commit than at the last call. Searches always see the last."""
        before, self._commit = self._commit, self.info()["commit"]
        return before != self._commit

    def __len__(self) -> int:
        return self.info()["passages"]

    def __repr__(self) -> str:
        return f"RemoteIndex({self._server!r}, {self.name!r})"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def _server(self) -> str:
        return str(self._client.base_url)

    @property
    def _place(self) -> str:
        return f"/v1/indexes/{quote(self.name, safe='')}"

    def _only_name(self) -> str:
        names = [found["name"] for found in self._asked("GET", "/v1/indexes")["indexes"]]
        if len(names) != 1:
            raise ConfigError(
                f"{self._server} serves {', '.join(names)}; name one: {self._server}/{names[0]}"
            )
        return names[0]

    def _post(self, what: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._asked("POST", f"{self._place}/{what}", body)

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        if self._client.is_closed:
            raise ArtifactError("this index has been closed; open it again to search it", path=self._server)
        try:
            answer = self._client.request(method, path, json=body)
        except UnicodeEncodeError as error:
            raise DataError(f"{error.object!r} cannot be sent: it has half a surrogate pair") from error
        except self._fault as error:
            raise ArtifactError(f"the server cannot be reached: {error}", path=self._server) from error
        if answer.is_success:
            return answer.json()
        detail = answer.json().get("detail", "") if "json" in answer.headers.get("content-type", "") else ""
        detail = detail or f"the server answered {answer.status_code}"
        if answer.status_code == 401:
            known = "does not know this key" if "authorization" in self._client.headers else "needs a key"
            raise ConfigError(f"{self._server} {known}; set the environment variable {KEY} to a key of it")
        if answer.status_code >= 500:
            raise ArtifactError(detail, path=self._server)
        raise DataError(detail) if path.endswith("/documents") else ConfigError(detail)


def _encoded(name: str) -> str:
    """An id as a part of an address, where a dot or two alone would mean another place."""
    return name.replace(".", "%2E") if name in (".", "..") else quote(name, safe="")
