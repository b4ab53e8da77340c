"""Authorizers of tests: functions that allow or deny requests, as an authorization webhook of the server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubist.model.meta.object import Object
from kubist.testing.errors import Denied
from kubist.testing.webhooks.hook import Hook

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

PATH = "/kubist/v1/authorizers"
EXPECTED = "return True, False or None (no opinion), or one of them and a reason"


@dataclass(repr=False)
class AuthorizationRequest:
    """A request for authorization. `raw` is the spec of Kubernetes' SubjectAccessReview."""

    raw: Object

    def __repr__(self) -> str:
        subresource = f"/{self.subresource}" if self.subresource else ""
        what = self.path if self.path else f"{self.resource}{subresource}"
        place = "/".join(filter(None, (self.namespace, self.name)))
        return f"<{self.user}: {self.verb} {what}{f' {place}' if place else ''}>"

    def _attribute(self, name: str) -> str:
        return str((self.raw.get("resourceAttributes") or {}).get(name) or "")

    @property
    def user(self) -> str:
        return str(self.raw.get("user") or "")

    @property
    def groups(self) -> list[str]:
        return list(self.raw.get("groups") or ())

    @property
    def uid(self) -> str:
        return str(self.raw.get("uid") or "")

    @property
    def extra(self) -> dict[str, list[str]]:
        return dict(self.raw.get("extra") or {})

    @property
    def verb(self) -> str:
        """get, list, watch, create, update, patch, delete, …; for a path the method in lower case."""
        attributes = self.raw.get("resourceAttributes") or self.raw.get("nonResourceAttributes") or {}
        return str(attributes.get("verb") or "")

    @property
    def path(self) -> str:
        """Path of a request that is for no resource, such as `/healthz`; else empty."""
        return str((self.raw.get("nonResourceAttributes") or {}).get("path") or "")

    @property
    def resource(self) -> str:
        """Resource, with its group: `pods`, `deployments.apps`. Empty for a path."""
        resource, group = self._attribute("resource"), self._attribute("group")
        return f"{resource}.{group}" if group else resource

    @property
    def version(self) -> str:
        return self._attribute("version")

    @property
    def subresource(self) -> str:
        return self._attribute("subresource")

    @property
    def namespace(self) -> str:
        return self._attribute("namespace")

    @property
    def name(self) -> str:
        return self._attribute("name")


class AuthorizerHook(Hook[AuthorizationRequest]):
    """A function that allows or denies requests."""

    kind = "authorizer"
    takes = ("request",)

    def register(self) -> None:
        webhook = {"name": self.name, "clientConfig": self._webhooks.client_config(self)}
        self._webhooks.request("POST", PATH, webhook)

    def unregister(self) -> None:
        self._webhooks.request("DELETE", f"{PATH}/{self.name}")

    def answer(self, review: Object) -> Object:
        request = AuthorizationRequest(review["spec"])
        self.record(request)
        try:
            status = _status(self.run(request))
        except Denied as denied:
            status = _status((False, denied.message))
        except BaseException as error:  # pytest.fail raises no Exception
            # A denial, because the server would ask again after a failure.
            reason = f"{self.kind} {self.name} failed: {self.note_error(error)}"
            status = {"allowed": False, "denied": True, "reason": reason}
        return {"kind": review["kind"], "apiVersion": review["apiVersion"], "status": status}


def _status(result: Any) -> Object:
    """Status of a SubjectAccessReview from the result of a function."""
    decision, reason = result, ""
    if isinstance(result, tuple):
        if len(result) != 2 or not isinstance(result[1], str):
            raise TypeError(f"the authorizer returned {result!r:.100}; {EXPECTED}")
        decision, reason = result
    if decision is not None and not isinstance(decision, bool):
        raise TypeError(f"the authorizer returned {decision!r:.100}; {EXPECTED}")
    status: Object = {"allowed": decision is True}
    if decision is False:
        status["denied"] = True
    return status | {"reason": reason} if reason else status
