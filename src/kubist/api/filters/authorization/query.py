"""AuthorizationQuery: the user, the verb, and the resource or non-resource path to authorize."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kubist.api.request import RequestInfo
from kubist.api.resources.context import User
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import selectors, status


@dataclass(slots=True)
class AuthorizationQuery:
    """Input of one authorization decision."""

    user: User
    verb: str
    path: str = ""
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""

    def forbidden(self, reason: str) -> status.APIError:
        """403 error with kube-apiserver's text."""
        tail = f": {reason}" if reason else ""
        if not self.is_resource:
            why = f"User {quoted(self.user.name)} cannot {self.verb} path {quoted(self.path)}"
            return _plain(status.forbidden("", "", "", why.translate(_SANITIZED) + tail))
        who = f"User {quoted(self.user.name)} cannot {self.verb}"
        what = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        where = f"in the namespace {quoted(self.namespace)}" if self.namespace else "at the cluster scope"
        why = f"{who} resource {quoted(what)} in API group {quoted(self.group)} {where}"
        return _plain(
            status.forbidden(self.group, self.resource, self.name, why.translate(_SANITIZED) + tail)
        )


def _plain(error: status.APIError) -> status.APIError:
    """Adds a header against content sniffing, because the message repeats client input and a browser must not render it
    as a page."""
    error.headers = (("X-Content-Type-Options", "nosniff"),)
    return error


_OPERATORS = {"=": "In", "==": "In", "in": "In", "!=": "NotIn", "notin": "NotIn", "exists": "Exists"}
_OPERATORS |= {"!": "DoesNotExist"}


def selectors_asked(query: AuthorizationQuery) -> dict[str, Any]:
    """Selectors of the request in the form of a SubjectAccessReview. A selector that cannot be parsed is omitted."""
    requirements: dict[str, list[tuple[str, str, Sequence[str]]]] = {}
    with contextlib.suppress(ValueError):
        fields = selectors.parse_field_selector(query.field_selector).requirements
        requirements["fieldSelector"] = [(key, operator, (value,)) for key, operator, value in fields]
    with contextlib.suppress(ValueError):
        labels = selectors.parse_label_selector(query.label_selector).requirements
        requirements["labelSelector"] = [(label.key, label.operator, label.values) for label in labels]
    return {
        kind: {"requirements": [_requirement(*one) for one in terms if one[1] in _OPERATORS]}
        for kind, terms in requirements.items()
        if terms
    }


def _requirement(key: str, operator: str, values: Sequence[str]) -> dict[str, Any]:
    said: dict[str, Any] = {"key": key, "operator": _OPERATORS[operator]}
    return said | {"values": list(values)} if values else said


def attributes(user: User, info: RequestInfo) -> AuthorizationQuery:
    """AuthorizationQuery of a request."""
    return AuthorizationQuery(
        user,
        info.verb,
        info.path,
        info.is_resource,
        info.group,
        info.version,
        info.resource,
        info.subresource,
        info.namespace,
        info.name,
        info.field_selector,
        info.label_selector,
    )


_SANITIZED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def aggregate(errors: Iterable[str]) -> str:
    """Several errors as one text, without duplicates, in kube-apiserver's format."""
    unique = list(dict.fromkeys(errors))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]" if unique else ""


def quoted_list(values: Iterable[str]) -> str:
    return f"[{' '.join(quoted(value) for value in values)}]"
