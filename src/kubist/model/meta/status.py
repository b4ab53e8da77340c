"""API errors: one exception with a Status, and a constructor for each reason.

Every error of a request becomes an `APIError`. The filters turn it into the response.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kubist.base.http.limits import BODY_BYTES
from kubist.model.meta.fields import FieldError, fitting, summary

Status = dict[str, Any]
ALL_CAUSES = 4 << 20
"""Limit in bytes for the causes in a response, because a body of 3 MB can have a million errors."""


class APIError(Exception):
    """Failed request, as the client sees it."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        *,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers
        self.list_meta: dict[str, Any] = {}

    def status(self) -> Status:
        status: Status = {"kind": "Status", "apiVersion": "v1", "metadata": self.list_meta}
        status["status"] = "Failure"
        if self.message:
            status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def qualified(resource: str, group: str) -> str:
    """Resource or kind with its group, as messages name it."""
    return f"{resource}.{group}" if group else resource


def _details(name: str = "", group: str = "", kind: str = "", **rest: Any) -> dict[str, Any]:
    pairs: dict[str, Any] = {"name": name, "group": group, "kind": kind, **rest}
    return {key: value for key, value in pairs.items() if value}


def bad_request(message: str) -> APIError:
    return APIError(400, "BadRequest", message)


def unauthorized(message: str = "Unauthorized") -> APIError:
    return APIError(401, "Unauthorized", message)


def forbidden(group: str, resource: str, name: str, why: str) -> APIError:
    """403 for a resource request, or for a path if `resource` is empty."""
    message = (
        f'{qualified(resource, group)} "{name}" is forbidden: {why}'
        if name
        else f"{qualified(resource, group)} is forbidden: {why}"
    )
    return APIError(
        403, "Forbidden", message if resource else f"forbidden: {why}", _details(name, group, resource)
    )


def not_found(group: str, resource: str, name: str) -> APIError:
    return APIError(
        404, "NotFound", f'{qualified(resource, group)} "{name}" not found', _details(name, group, resource)
    )


def no_such_path() -> APIError:
    """404 for a path below a known group and version that does not exist."""
    return APIError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> APIError:
    message = "the server does not allow this method on the requested resource"
    return APIError(405, "MethodNotAllowed", message, {})


def method_not_supported(group: str, resource: str, action: str) -> APIError:
    message = f"{action} is not supported on resources of kind {qualified(resource, group)!r}".replace(
        "'", '"'
    )
    return APIError(405, "MethodNotAllowed", message, _details("", group, resource))


def already_exists(group: str, resource: str, name: str) -> APIError:
    message = f'{qualified(resource, group)} "{name}" already exists'
    return APIError(409, "AlreadyExists", message, _details(name, group, resource))


def conflict(group: str, resource: str, name: str, why: str) -> APIError:
    message = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}'
    return APIError(409, "Conflict", message, _details(name, group, resource))


def gone(message: str) -> APIError:
    return APIError(410, "Expired", message)


def too_large(message: str) -> APIError:
    return APIError(413, "RequestEntityTooLarge", message)


def body_too_large(limit: int = BODY_BYTES) -> APIError:
    return too_large(f"Request entity too large: limit is {limit}")


def invalid(group: str, kind: str, name: str, errors: Iterable[FieldError]) -> APIError:
    """422 with all causes, or with the first ALL_CAUSES bytes of them. `kind` is the Kind, not the resource
    (some callers pass the resource, as the reference does)."""
    all_errors = errors if isinstance(errors, list) else list(errors)
    errors = fitting(all_errors, ALL_CAUSES)
    message = f'{qualified(kind, group)} "{name}" is invalid'
    if errors:
        message += f": {summary(errors)}"
    details = _details(name, group, kind)
    details["causes"] = [error.cause() for error in errors]
    if not errors:
        del details["causes"]
    elif len(errors) < len(all_errors):
        message += f" and {len(all_errors) - len(errors)} more"
    return APIError(422, "Invalid", message, details)


def too_many_requests(message: str, retry_after: int) -> APIError:
    details = {"retryAfterSeconds": retry_after} if retry_after else {}
    headers = [("Retry-After", str(retry_after))] if retry_after else []
    return APIError(429, "TooManyRequests", message, details, headers=headers)


def internal_error(why: str) -> APIError:
    """500 with a cause, for failures of the server."""
    message = f"Internal error occurred: {why}"
    return APIError(500, "InternalError", message, {"causes": [{"message": why}]})


def plain_error(message: str) -> APIError:
    """500 without a reason, as the reference responds to an unclassified error."""
    return APIError(500, "", message)


def unavailable(why: str) -> APIError:
    return APIError(503, "ServiceUnavailable", why, headers=[("Retry-After", "1")])


def timeout(message: str, retry_after: int = 0, causes: Sequence[dict[str, str]] = ()) -> APIError:
    details: dict[str, Any] = {}
    if causes:
        details["causes"] = list(causes)
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    headers = [("Retry-After", str(retry_after))] if retry_after else []
    return APIError(504, "Timeout", message, details, headers=headers)


def success(code: int, details: dict[str, Any] | None = None) -> Status:
    status: Status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    if code:
        status["code"] = code
    return status
