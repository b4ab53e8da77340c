"""Errors of tests: a rejected request, the rejection by a webhook, and webhooks that failed unnoticed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubist.model.meta.object import Object


class Refused(Exception):
    """The server rejected a request. `status` is the Status of the response, `fault` the id of the fault rule that
    made the response; empty if none did."""

    def __init__(self, code: int, status: Object, fault: str = "") -> None:
        message = status.get("message", f"HTTP {code}")
        super().__init__(f"{message} (injected by fault rule {fault})" if fault else message)
        self.code = code
        self.status = status
        self.fault = fault


REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Denied(Exception):
    """Rejects a request, with the HTTP status code, warnings and audit annotations of the response.

    raise Denied("the image needs a tag", code=422)
    """

    def __init__(
        self,
        message: str = "",
        *,
        code: int = 403,
        warnings: Sequence[str] = (),
        audit: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.warnings = [warnings] if isinstance(warnings, str) else list(warnings)
        self.audit = dict(audit or {})

    def status(self) -> Object:
        status: Object = {"status": "Failure", "code": self.code}
        if self.message:
            status["message"] = self.message
        if self.code in REASONS:
            status["reason"] = REASONS[self.code]
        return status


class WebhookFailed(Exception):
    """Functions of webhooks raised exceptions that the test did not read from `hook.errors`."""

    def __init__(self, reports: list[str]) -> None:
        super().__init__("\n".join(reports).rstrip())
