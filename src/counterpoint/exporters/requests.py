"""Engines that are written by HTTP requests: these are sent to a server, or their bodies written to files."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from counterpoint.errors import ConfigError, MissingExtraError
from counterpoint.exporters.contents import Contents, Row
from counterpoint.exporters.engine import Engine, Place, Writer
from counterpoint.folders import FolderKind, publish_folder

__all__ = ["HttpEngine", "Request", "json_of"]

DESCRIPTION = "export.json"
FOLDER = FolderKind(
    DESCRIPTION, ("documents/*", "index.json", "collection.json", "schemas/*.sd", "services.xml")
)
SECONDS = 120.0


def json_of(value: object) -> str:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@final
@dataclass(frozen=True)
class Request:
    """A request.

    Attributes:
        method: of HTTP.
        path: with the query string.
        body: JSON, or JSON Lines.
    """

    method: str
    path: str
    body: str = ""


class HttpEngine(Engine):
    """An engine that needs no client. Abstract.

    Attributes:
        suffix: of the files with documents.
    """

    suffix: str
    writes_files = True

    @abstractmethod
    def files(self, contents: Contents) -> dict[str, str]:
        """The files that describe the collection, by path in the folder."""

    @abstractmethod
    def lines(self, contents: Contents, rows: Sequence[Row]) -> str:
        """Documents as a file of the engine's own format."""

    @abstractmethod
    def sent(self, contents: Contents, rows: Sequence[Row]) -> Iterator[Request]:
        """The requests that write documents, replacing those with the same ids."""

    @abstractmethod
    def refused(self, answer: Any) -> str | None:
        """What an answer with a good status says that was refused; None if nothing was."""

    @abstractmethod
    def made(self, contents: Contents) -> tuple[Request, Request | None]:
        """The request that reads the collection's description, and the one that makes the collection.

        None for the second if it cannot be made by a request.
        """

    @abstractmethod
    def fits(self, contents: Contents, answer: Any) -> bool:
        """Whether the answer to the first request of `made` describes a collection of this shape."""

    @abstractmethod
    def known(self, contents: Contents, ids: Sequence[str]) -> Request:
        """The request for the stamps of documents."""

    @abstractmethod
    def stamps_in(self, answer: Any) -> dict[str, str]:
        """The stamps in the answer to `known`, by id."""

    @abstractmethod
    def counting(self, contents: Contents) -> list[Request]:
        """The requests for the number of documents; the last one's answer has it."""

    @abstractmethod
    def count_in(self, contents: Contents, answer: Any) -> int:
        """The number in the answer to `counting`."""

    def connect(self, contents: Contents, place: Place) -> Writer:
        """Open a server, or begin to write files."""
        if place.folder is not None:
            return _Files(
                self, contents, publish_folder(place.folder, overwrite=place.overwrite, kind=FOLDER)
            )
        return _Server(self, contents, place)


@final
class _Files(Writer):
    """Files in a folder, which is there once it is complete."""

    def __init__(self, engine: HttpEngine, contents: Contents, folder: AbstractContextManager[Path]):
        self.engine, self.contents, self.context = engine, contents, folder
        self.folder = folder.__enter__()
        self.documents = self.number = 0

    def create(self) -> None:
        (self.folder / "documents").mkdir()
        for name, text in self.engine.files(self.contents).items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def stamps(self, ids: Sequence[str]) -> Mapping[str, str]:
        """None: files are always written from the start."""
        return {}

    def write(self, rows: Sequence[Row]) -> None:
        self.number, self.documents = self.number + 1, self.documents + len(rows)
        path = self.folder / "documents" / f"{self.number:05}.{self.engine.suffix}"
        path.write_text(self.engine.lines(self.contents, rows), encoding="utf-8")

    def count(self) -> int:
        return self.documents

    def finish(self) -> None:
        told = {"engine": self.engine.name, "collection": self.contents.name, "documents": self.documents}
        (self.folder / DESCRIPTION).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")

    def close(self, done: bool) -> None:
        """Move the folder in place, or remove it."""
        if done:
            self.context.__exit__(None, None, None)
            return
        stopped = _Stopped()
        with suppress(_Stopped):  # the error that stopped the export is on its way
            self.context.__exit__(_Stopped, stopped, None)


@final
class _Server(Writer):
    def __init__(self, engine: HttpEngine, contents: Contents, place: Place):
        try:
            import httpx
        except ImportError as error:
            raise MissingExtraError("export to a server", package="httpx", extra="serve") from error
        self.engine, self.contents = engine, contents
        name, colon, word = (place.key or "").partition(":")
        headers = {"authorization": f"Bearer {place.key}"} if place.key and not colon else {}
        self.client = httpx.Client(
            base_url=str(place.url).rstrip("/"),
            headers=headers,
            auth=(name, word) if colon else None,
            timeout=SECONDS,
        )
        self.faults = (httpx.HTTPError, _Refused)

    def create(self) -> None:
        read, make = self.engine.made(self.contents)
        answer = self.client.request(read.method, read.path)
        if answer.status_code == 404 and make is not None:
            self._asked(make)
            return
        if not self.engine.fits(self.contents, _checked(answer)):
            raise ConfigError(
                f"--name: {self.contents.name!r} exists and has other fields; choose another name, or "
                "delete it"
            )

    def stamps(self, ids: Sequence[str]) -> Mapping[str, str]:
        return self.engine.stamps_in(self._asked(self.engine.known(self.contents, ids)))

    def write(self, rows: Sequence[Row]) -> None:
        for request in self.engine.sent(self.contents, rows):
            if (refused := self.engine.refused(self._asked(request))) is not None:
                raise _Refused(refused)

    def count(self) -> int:
        answers = [self._asked(request) for request in self.engine.counting(self.contents)]
        return self.engine.count_in(self.contents, answers[-1])

    def close(self, done: bool) -> None:
        self.client.close()

    def _asked(self, request: Request) -> Any:
        content = request.body.encode() if request.body else None
        kind = "application/x-ndjson" if request.body.endswith("\n") else "application/json"
        headers = {"content-type": kind} if request.body else {}
        return _checked(self.client.request(request.method, request.path, content=content, headers=headers))


class _Stopped(Exception):
    """The export ended before its last document."""


class _Refused(Exception):
    """The server understood a request and refused it."""


def _checked(answer: Any) -> Any:
    if not answer.is_success:
        raise _Refused(f"the server answered {answer.status_code}: {answer.text[:500]}")
    return answer.json() if answer.content else None
