"""Describe in OpenAPI the body that is read raw, from the very types that decode it."""

from __future__ import annotations

from typing import Any

import msgspec

from rlvitals.records import StepAnswer, StepBatch, StepRecord

TEMPLATE = "#/components/schemas/{name}"


def reference(name: str) -> dict[str, Any]:
    """Refer to a described type."""
    return {"$ref": TEMPLATE.format(name=name)}


def schemas() -> dict[str, Any]:
    """Give the JSON Schema of every type on the wire."""
    kinds = [StepBatch, StepRecord, StepAnswer]
    _, described = msgspec.json.schema_components(kinds, ref_template=TEMPLATE)
    described["StepBatch"]["properties"]["records"]["items"] = reference("StepRecord")
    return described


def operation(media_types: tuple[str, ...]) -> dict[str, Any]:
    """Describe body and answer of the operation that takes a batch."""
    body = {kind: {"schema": reference("StepBatch")} for kind in media_types}
    answer = {"application/json": {"schema": reference("StepAnswer")}}
    encoding = {
        "name": "Content-Encoding",
        "in": "header",
        "required": False,
        "schema": {"type": "string", "enum": ["identity", "gzip", "zstd"]},
        "description": "How the body is packed.",
    }
    return {
        "requestBody": {"required": True, "content": body},
        "parameters": [encoding],
        "responses": {"200": {"description": "What was taken, what was not.", "content": answer}},
    }


def add_to(openapi: dict[str, Any]) -> dict[str, Any]:
    """Add the types on the wire to a finished OpenAPI document."""
    known = openapi.setdefault("components", {}).setdefault("schemas", {})
    for name, schema in schemas().items():
        known.setdefault(name, schema)
    return openapi
