"""Status objects in the representation that the client accepts."""

from __future__ import annotations

from typing import Any

import orjson

from kubist.api.representation.representation import indented
from kubist.api.request import parse_query
from kubist.base.http.messages import Request
from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec import negotiate, protobuf, yaml
from kubist.model.meta import status
from kubist.model.schema.catalog import schema_for


def render_status(request: Request, status_object: dict[str, Any]) -> tuple[bytes, str]:
    """Body and content type of a Status. Falls back to indented JSON if the Accept header is not acceptable."""
    headers = request.headers
    query = parse_query(request.query) if "pretty" in request.query else {}
    pretty = negotiate.wants_pretty(query, headers.get("user-agent", ""))
    try:
        media = negotiate.negotiate(headers.get("accept", ""), negotiate.ERRORS, pretty=pretty)
    except status.APIError:
        media = negotiate.MediaType(negotiate.JSON, pretty=True)
    try:
        if media.serializer == negotiate.YAML:
            return yaml.dumps(status_object), negotiate.YAML
        if media.serializer == negotiate.PROTOBUF:
            raw = protobuf.encode(schema_for("", "v1", "Status"), status_object)
            return protobuf.wrap("v1", "Status", raw), negotiate.PROTOBUF
    except DecodeError:
        pass
    if media.pretty:
        return indented(status_object), negotiate.JSON
    return orjson.dumps(status_object, option=orjson.OPT_APPEND_NEWLINE), negotiate.JSON
