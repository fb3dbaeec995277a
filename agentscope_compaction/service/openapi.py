"""What ``/openapi.json`` says: the request, the answers and every status, as they are."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from agentscope_compaction.core.types import CompactionProposal, CompactionRequest, JSONObject
from agentscope_compaction.service.failures import STATUS, ErrorType

__all__ = ["RESPONSES", "Failure", "Health", "Success", "describe"]


class Metadata(BaseModel):
    """What an answer tells beside the proposal."""

    compaction: JSONObject
    """The proposal's ``stats`` once more, where ReMe's clients look for them."""


class Success(BaseModel):
    """A proposal."""

    success: Literal[True]
    answer: CompactionProposal
    metadata: Metadata


class ErrorInfo(BaseModel):
    """Why there is no proposal."""

    type: ErrorType
    message: str


class Failure(BaseModel):
    """No proposal."""

    success: Literal[False]
    error: ErrorInfo


class Health(BaseModel):
    """The service runs."""

    status: Literal["ok"] = "ok"


_MEANING = {
    400: "The body is not JSON; NaN, infinities and numbers that overflow are not.",
    401: "The token is missing or wrong.",
    408: "The body did not arrive in time.",
    413: "The body is larger than allowed.",
    415: "The content type is not JSON.",
    421: "The Host header is not a name of this service.",
    422: "The JSON is no valid snapshot, or does not fit its own token budgets.",
    500: "The service is misconfigured or has a bug.",
    502: "The decision model failed or answered something unusable.",
    503: "As many requests as allowed are running; see Retry-After.",
    504: "A deadline passed: the request's own or the service's.",
}


def _response(status: int) -> dict[str, Any]:
    response: dict[str, Any] = {"model": Failure, "description": _MEANING[status]}
    if status == 503:
        schema = {"type": "integer", "minimum": 0}
        response["headers"] = {"Retry-After": {"description": "Seconds.", "schema": schema}}
    return response


RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": Success, "description": "The proposal; nothing was changed anywhere."},
    **{status: _response(status) for status in sorted(set(STATUS.values()) & set(_MEANING))},
}
"""Documented answers of ``/compact_context``."""

_REFS = "#/components/schemas/{model}"
_PATH = "/compact_context"


def describe(app: FastAPI, *, guarded: bool, named: bool) -> None:
    """Let the application describe the body it reads itself, its token and its names."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _schema(app, guarded=guarded, named=named)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend it


def _schema(app: FastAPI, *, guarded: bool, named: bool) -> dict[str, Any]:
    schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
    components = schema["components"]
    components["schemas"].update(_request_schemas())
    operation = schema["paths"][_PATH]["post"]
    reference = {"$ref": _REFS.format(model=CompactionRequest.__name__)}
    content = {"application/json": {"schema": reference}}
    operation["requestBody"] = {"required": True, "content": content}
    if guarded:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        operation["security"] = [{"token": []}]
    else:
        operation["responses"].pop("401")
    if not named:
        operation["responses"].pop("421")
    return schema


def _request_schemas() -> dict[str, Any]:
    """The request's schema and those it refers to, with what only its validators know."""
    request = CompactionRequest.model_json_schema(ref_template=_REFS)
    definitions: dict[str, Any] = request.pop("$defs", {})
    properties = request["properties"]
    properties["goal"]["pattern"] = r"\S"
    properties["messages"]["items"] = {
        "type": "object",
        "required": ["role", "content"],
        "properties": {
            "role": {"enum": ["user", "assistant", "system"]},
            "content": {"type": "array", "items": {"type": "object"}},
        },
    }
    return {**definitions, CompactionRequest.__name__: request}
