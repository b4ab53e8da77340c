"""Status of an injected failure, with the reason, message and details that kube-apiserver uses for its code."""

from __future__ import annotations

import math
from http import HTTPStatus

from kubist.model.meta import status
from kubist.model.meta.status import APIError
from kubist.testbench.control_api.call import FAULT_HEADER
from kubist.testbench.faults.request import FaultRequest
from kubist.testbench.faults.rule import FaultRule

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
REASONS = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "Unauthorized"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", "only the following media types are accepted: application/json"),
    415: ("UnsupportedMediaType", "the body of the request was in an unknown format"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    500: ("InternalError", "Internal error occurred: injected fault"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "Timeout: request did not complete within the allotted timeout"),
}
"""Reason and message of codes that do not name the object."""


def failure_error(code: int, rule: FaultRule, request: FaultRequest, id_: str) -> APIError:
    """The error that ends a request. An empty reason or message of the rule is that of the reference."""
    usual = _usual(code, request)
    details = dict(usual.details or {})
    headers = [pair for pair in usual.headers if pair[0] != "Retry-After"]
    if rule.retry_after:
        seconds = math.ceil(rule.retry_after)
        details["retryAfterSeconds"] = seconds
        headers.append(("Retry-After", str(seconds)))
    return APIError(
        code,
        rule.reason or usual.reason,
        rule.message or usual.message,
        details or usual.details,
        headers=[*headers, (FAULT_HEADER, id_)],
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
    if code == 413:
        return status.body_too_large()
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
