"""The REST interface for people who read: every route with what it takes and gives, from its own description."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.web.pages import render
from fieldmark_challenge.web.links import address_of

router = APIRouter()


@router.get("/docs")
def api_docs(request: Request) -> Response:
    described = request.app.openapi()
    return render(
        request,
        "api_docs.html",
        groups=grouped_routes(described, address_of(request, "")),
        schemas={name: schema_rows(schema) for name, schema in described["components"]["schemas"].items()},
        about=described["info"]["description"],
    )


def grouped_routes(described: dict[str, Any], root: str) -> dict[str, list[dict[str, Any]]]:
    """The routes of a description by the first of their tags."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, verbs in described["paths"].items():
        for verb, route in verbs.items():
            body = route.get("requestBody", {}).get("content", {})
            groups.setdefault((route.get("tags") or ["other"])[0], []).append(
                {
                    "id": route["operationId"],
                    "verb": verb.upper(),
                    "path": path,
                    "about": route.get("description") or route.get("summary", ""),
                    "parameters": [
                        {
                            "name": one["name"],
                            "place": one["in"],
                            "type": type_of(one["schema"]),
                            "required": one.get("required", False),
                            "about": one.get("description", ""),
                        }
                        for one in route.get("parameters", ())
                    ],
                    "body": [(kind, reference(content["schema"])) for kind, content in body.items()],
                    "answers": [
                        (status, one["description"], _answer_schema(one)) for status, one in route["responses"].items()
                    ],
                    "curl": curl(verb, f"{root}{path}", body),
                }
            )
    return groups


def schema_rows(schema: dict[str, Any]) -> list[tuple[str, str, bool, str]]:
    """The fields of an object: name, type, whether it must be there, and what it means."""
    needed = schema.get("required", ())
    return [
        (name, type_of(field), name in needed, field.get("description", ""))
        for name, field in schema.get("properties", {}).items()
    ]


def type_of(schema: dict[str, Any]) -> str:
    """A type in a few words.

    >>> type_of({"anyOf": [{"type": "integer"}, {"type": "null"}]})
    'integer or null'
    >>> type_of({"type": "array", "items": {"type": "string"}})
    'list of string'
    """
    if "anyOf" in schema:
        return " or ".join(type_of(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    return reference(schema) or str(schema.get("format") or schema.get("type", "anything"))


def reference(schema: dict[str, Any]) -> str:
    """The name of the object that a schema refers to, empty for none."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def curl(verb: str, address: str, body: dict[str, Any]) -> str:
    """A command that calls a route."""
    method = "" if verb == "get" else f" -X {verb.upper()}"
    given = " -F run=@run.csv" if "multipart/form-data" in body else ""
    return f'curl -H "Authorization: Bearer $FIELDMARK_TOKEN"{method}{given} {address}'


def _answer_schema(answer: dict[str, Any]) -> str:
    for content in answer.get("content", {}).values():
        return reference(content.get("schema", {})) or reference(content.get("schema", {}).get("items", {}))
    return ""
