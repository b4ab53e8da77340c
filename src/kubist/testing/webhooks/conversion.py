"""Conversion webhooks of tests: functions that convert custom objects between the versions of their CRD."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubist.model.meta.object import Object
from kubist.testing.errors import Denied
from kubist.testing.webhooks.hook import Function, Hook, checked

if TYPE_CHECKING:
    from kubist.testing.webhooks.webhooks import Webhooks

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True


@dataclass(repr=False)
class ConversionRequest:
    """One object to convert."""

    object: Object
    api_version: str
    """Version to convert to, such as `example.com/v2`."""

    def __repr__(self) -> str:
        metadata = self.object.get("metadata") or {}
        name = "/".join(filter(None, (metadata.get("namespace"), metadata.get("name"))))
        return f"<{self.object.get('kind')} {name}: {self.object.get('apiVersion')} to {self.api_version}>"


class ConversionHook(Hook[ConversionRequest]):
    """A function of an object and an apiVersion that returns the object in that version."""

    kind = "conversion webhook"
    takes = ("object", "apiVersion")

    def __init__(self, webhooks: Webhooks, function: Function, name: str, crd: str) -> None:
        super().__init__(webhooks, function, name)
        self._crd = crd
        self._before: Object | None = None

    def describe(self) -> str:
        return self._crd

    def register(self) -> None:
        webhook = {"clientConfig": self._webhooks.client_config(self), "conversionReviewVersions": ["v1"]}
        self._before = self._webhooks.set_conversion(self._crd, {"strategy": "Webhook", "webhook": webhook})

    def unregister(self) -> None:
        """Restores the conversion that the CRD had before, unless it has another one by now."""
        self._webhooks.set_conversion(
            self._crd,
            self._before or {"strategy": "None"},
            instead_of=self._webhooks.client_config(self)["url"],
        )

    def answer(self, review: Object) -> Object:
        request = review["request"]
        response: Object = {"uid": request["uid"], "convertedObjects": [], "result": {"status": "Success"}}
        try:
            for obj in request["objects"]:
                response["convertedObjects"].append(self._convert(obj, request["desiredAPIVersion"]))
        except Denied as denied:
            response |= {"convertedObjects": [], "result": denied.status()}
        except BaseException as error:  # pytest.fail raises no Exception
            failure = {"status": "Failure", "message": self.note_error(error)}
            response |= {"convertedObjects": [], "result": failure}
        return {"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response}

    def _convert(self, obj: Object, api_version: str) -> Object:
        self.record(ConversionRequest(json.loads(json.dumps(obj)), api_version))
        converted = self.run(obj, api_version)
        if converted is None:
            converted = obj  # changed in place
        if not isinstance(converted, dict):
            raise TypeError(f"{self.kind} {self.name} returned {type(converted).__name__}; return the object")
        result: Object = checked(converted, self)
        if result.get("apiVersion") == obj.get("apiVersion"):
            result["apiVersion"] = api_version
        return result
