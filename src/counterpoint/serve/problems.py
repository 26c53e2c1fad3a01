"""Errors as problem details (RFC 9457): JSON that says what is wrong, without a path of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from counterpoint.errors import ArtifactError, CounterpointError, MissingExtraError, without_paths
from counterpoint.search.fleet import ShardGone

__all__ = ["DESCRIBED", "MEDIA_TYPE", "Problem", "install", "response_of"]

MEDIA_TYPE = "application/problem+json"
MEMBERS = {"type": "string", "title": "string", "status": "integer", "detail": "string"}
DESCRIBED: Mapping[str, Any] = {
    "description": "A problem (RFC 9457)",
    "content": {
        MEDIA_TYPE: {
            "schema": {
                "type": "object",
                "required": list(MEMBERS),
                "properties": {name: {"type": kind} for name, kind in MEMBERS.items()},
            }
        }
    },
}
"""Every answer that is an error, for the API's description."""


@final
class Problem(Exception):
    """An answer that is an error.

    Args:
        status: the HTTP status.
        detail: what is wrong and what to do.
        headers: further headers, such as `Retry-After`.
    """

    def __init__(self, status: HTTPStatus, detail: str, headers: dict[str, str] | None = None):
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


def response_of(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """A problem as a response; `more` are further members of its body."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse(body | more, status, headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Answer every error of an application with a problem."""

    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> JSONResponse:
        return response_of(error.status, error.detail, error.headers)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        detail = f"{request.method} {request.url.path}: {error.detail}"
        return response_of(error.status_code, detail, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        faults = [_fault(**fault) for fault in error.errors()]
        shown = "; ".join(f"{fault['at']}: {fault['detail']}" for fault in faults[:5])
        return response_of(HTTPStatus.UNPROCESSABLE_ENTITY, shown, errors=faults)

    @app.exception_handler(CounterpointError)
    async def ours(request: Request, error: CounterpointError) -> JSONResponse:
        status = _status(error)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            request.state.fault = str(error)  # the log has it all
        return response_of(status, without_paths(error))

    @app.exception_handler(Exception)
    async def bug(request: Request, error: Exception) -> JSONResponse:
        return response_of(
            HTTPStatus.INTERNAL_SERVER_ERROR, "an error of the server; its log has the request id"
        )


def _fault(type: str, loc: tuple[str | int, ...], msg: str, **more: Any) -> dict[str, str]:
    """What is wrong with a request, and where; `more` are other members of the validator's error."""
    if type == "json_invalid":
        return {"at": str(loc[0]), "detail": f"not JSON, at character {loc[-1]}: {more['ctx']['error']}"}
    return {"at": ".".join(map(str, loc)), "detail": msg}


def _status(error: CounterpointError) -> HTTPStatus:
    if isinstance(error, MissingExtraError):
        return HTTPStatus.NOT_IMPLEMENTED
    gone = isinstance(error, ArtifactError | ShardGone)
    return HTTPStatus.SERVICE_UNAVAILABLE if gone else HTTPStatus.BAD_REQUEST
