"""Status of an injected failure, with the reason, message and details that kube-apiserver uses for its code."""

from __future__ import annotations

from http import HTTPStatus

from kubist.model.meta import status
from kubist.model.meta.status import APIError
from kubist.testbench.control_api.call import FAULT_HEADER
from kubist.testbench.faults.request import FaultRequest
from kubist.testbench.faults.rule import Failure

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
REASONS = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "Unauthorized"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", "only the following media types are accepted: application/json"),
    413: ("RequestEntityTooLarge", "Request entity too large: limit is 3145728"),
    415: ("UnsupportedMediaType", "the body of the request was in an unknown format"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    500: ("InternalError", "Internal error occurred: injected fault"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "Timeout: request did not complete within the allotted timeout"),
}
"""Reason and message of codes that do not name the object."""


def failure_error(failure: Failure, request: FaultRequest, rule: str) -> APIError:
    """The error that ends a request. `rule` is the id of the fault rule."""
    usual = _usual(failure.code, request)
    details = dict(usual.details or {})
    headers = [pair for pair in usual.headers if pair[0] != "Retry-After"]
    if failure.retry_after:
        details["retryAfterSeconds"] = failure.retry_after
        headers.append(("Retry-After", str(failure.retry_after)))
    return APIError(
        failure.code,
        failure.reason or usual.reason,
        failure.message or usual.message,
        details or usual.details,
        headers=[*headers, (FAULT_HEADER, rule)],
    )


def _usual(code: int, request: FaultRequest) -> APIError:
    """The error of the reference for a code and a request."""
    info, name = request.info, request.name
    group, resource = info.group, info.resource
    if code == 403:
        return status.forbidden(group, resource, name, "injected fault")
    if code == 404:
        return status.not_found(group, resource, name) if name else status.no_such_path()
    if code == 409 and info.verb == "create":
        return status.already_exists(group, resource, name)
    if code == 409:
        return status.conflict(group, resource, name, MODIFIED)
    if code == 410:
        what = "watch" if info.verb == "watch" else "list"
        return status.gone(f"The resourceVersion for the provided {what} is too old.")
    if code == 422:
        kind = request.resource.kind if request.resource is not None else resource
        return status.invalid(group, kind, name, [])
    if code in REASONS:
        return APIError(code, *REASONS[code])
    try:
        phrase = HTTPStatus(code).phrase
    except ValueError:
        phrase = f"status {code}"
    return APIError(code, "", phrase)
