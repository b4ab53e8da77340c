"""OpenID discovery of the service-account token issuer: the configuration document and the public keys (JWKS)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kubist.base.http.messages import Answer, Request, Response
from kubist.model.meta import status

if TYPE_CHECKING:
    from kubist.api.filters.authentication.tokens import KeySet

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
MAX_AGE = 3600


def openid_paths(issuer: str, jwks_uri: str, keys: KeySet) -> dict[str, Callable[[Request], Answer]]:
    """Handlers by path. Empty unless the issuer is an https URL without query and fragment, as OpenID requires."""
    url = urlsplit(issuer)
    if url.scheme != "https" or url.query or url.fragment:
        return {}
    configuration = {
        "issuer": issuer,
        "jwks_uri": jwks_uri,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": keys.algorithms(),
    }
    return {
        CONFIGURATION: _document(configuration, "application/json"),
        KEYS: _document(keys.jwks(), "application/jwk-set+json"),
    }


def _document(content: dict[str, Any], content_type: str) -> Callable[[Request], Answer]:
    body = json.dumps(content, separators=(",", ":")).encode()
    headers = [
        (b"Content-Type", content_type.encode()),
        (b"Cache-Control", f"public, max-age={MAX_AGE}".encode()),
    ]

    def answer(request: Request) -> Response:
        if request.method != "GET":
            raise status.method_not_allowed()
        accept = request.headers.get("accept") or "*/*"
        taken = {part.partition(";")[0].strip() for part in accept.split(",")}
        if not taken & {"*/*", content_type}:
            why = f"406: Not Acceptable\n\nAvailable representations: {content_type}"
            raise status.APIError(406, "NotAcceptable", why, {})
        return Response(200, list(headers), body)

    return answer
