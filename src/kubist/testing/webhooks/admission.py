"""Admission webhooks of tests: functions that change or validate objects."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict

from kubist.model.meta.object import Object
from kubist.testing.errors import Denied
from kubist.testing.webhooks.hook import Function, Hook, checked

if TYPE_CHECKING:
    from kubist.testing.webhooks.webhooks import Webhooks
from collections.abc import Iterable, Iterator

from kubist.api.resources.resource import Resources
from kubist.base.hints import did_you_mean
from kubist.testing import references

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

GROUP = "admissionregistration.k8s.io"


class AdmissionOptions(TypedDict, total=False):
    """Options of admission webhooks. They are the fields of a webhook in its configuration."""

    name: str
    """Name of the configuration. The default is the name of the function."""
    operations: str | Sequence[str]
    """CREATE, UPDATE, DELETE, CONNECT or *. The default is CREATE and UPDATE; CONNECT for subresources such as exec."""
    versions: Sequence[str]
    """API versions; the default is all. The function gets objects in one of them."""
    scope: Literal["*", "Namespaced", "Cluster"]
    namespace_selector: Object
    object_selector: Object
    match_conditions: Sequence[str] | dict[str, str]
    """CEL expressions that must be true, or a dict of names and expressions."""
    match_policy: Literal["Equivalent", "Exact"]
    failure_policy: Literal["Fail", "Ignore"]
    side_effects: Literal["None", "NoneOnDryRun"]
    timeout: int
    """Seconds, 1 to 30."""
    reinvocation: Literal["Never", "IfNeeded"]
    """For mutating webhooks: whether it is called again after changes of others."""


_FIELDS = {
    "namespace_selector": "namespaceSelector",
    "object_selector": "objectSelector",
    "match_policy": "matchPolicy",
    "failure_policy": "failurePolicy",
    "side_effects": "sideEffects",
    "timeout": "timeoutSeconds",
    "reinvocation": "reinvocationPolicy",
}


@dataclass(repr=False)
class AdmissionRequest:
    """A request for admission. `raw` has all fields of Kubernetes' AdmissionRequest."""

    raw: Object
    warnings: list[str] = field(default_factory=list)
    audit_annotations: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"<{self.operation} {resource} {place} by {self.user}>"

    @property
    def uid(self) -> str:
        return str(self.raw["uid"])

    @property
    def operation(self) -> str:
        """CREATE, UPDATE, DELETE or CONNECT."""
        return str(self.raw["operation"])

    @property
    def object(self) -> Object | None:
        """The new object; None for DELETE."""
        return self.raw.get("object")

    @property
    def old_object(self) -> Object | None:
        """The object before UPDATE and DELETE."""
        return self.raw.get("oldObject")

    @property
    def options(self) -> Object | None:
        """CreateOptions, UpdateOptions or DeleteOptions of the request."""
        return self.raw.get("options")

    @property
    def resource(self) -> str:
        """Resource, with its group: `pods`, `deployments.apps`."""
        gvr = self.raw["resource"]
        return f"{gvr['resource']}.{gvr['group']}" if gvr.get("group") else str(gvr["resource"])

    @property
    def subresource(self) -> str:
        return str(self.raw.get("subResource") or "")

    @property
    def name(self) -> str:
        """Name of the object; empty while it is to be generated."""
        return str(self.raw.get("name") or "")

    @property
    def namespace(self) -> str:
        return str(self.raw.get("namespace") or "")

    @property
    def user(self) -> str:
        """Name of the user who sent the request."""
        return str(self.raw["userInfo"].get("username") or "")

    @property
    def groups(self) -> list[str]:
        """Groups of the user."""
        return list(self.raw["userInfo"].get("groups") or ())

    @property
    def dry_run(self) -> bool:
        return bool(self.raw.get("dryRun"))

    def warn(self, text: str) -> None:
        """Adds a warning that the client sees."""
        self.warnings.append(text)

    def audit(self, key: str, value: str) -> None:
        """Adds an annotation to the audit event of the request."""
        self.audit_annotations[key] = value


class AdmissionHook(Hook[AdmissionRequest]):
    """Base of both kinds of admission webhooks."""

    takes = ("object", "request")
    plural: ClassVar[str]

    def __init__(
        self, webhooks: Webhooks, function: Function, name: str, resources: Sequence[str], options: Object
    ) -> None:
        super().__init__(webhooks, function, name)
        self._resources = resources
        self._webhook = self._configure(dict(options))

    def describe(self) -> str:
        operations = dict.fromkeys(one for rule in self._webhook["rules"] for one in rule["operations"])
        return f"{', '.join(self._resources)} {' '.join(operations)}"

    def _configure(self, options: Object) -> Object:
        """The webhook in the form of its configuration, without its clientConfig."""
        served = self._webhooks.served
        operations, versions = options.pop("operations", None), options.pop("versions", ("*",))
        scope = options.pop("scope", "*")
        webhook: Object = {
            "name": f"{self.name}.kubist.test",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "rules": _make_rules(self._resources, operations, versions, scope, served),
        }
        conditions = options.pop("match_conditions", ())
        if isinstance(conditions, str):
            conditions = [conditions]
        if not isinstance(conditions, dict):
            conditions = {f"condition-{number}": text for number, text in enumerate(conditions, 1)}
        if conditions:
            webhook["matchConditions"] = [
                {"name": name, "expression": expression} for name, expression in conditions.items()
            ]
        return webhook | {_FIELDS[option]: value for option, value in options.items()}

    def register(self) -> None:
        webhook = self._webhook | {"clientConfig": self._webhooks.client_config(self)}
        configuration = {"metadata": {"name": self.name}, "webhooks": [webhook]}
        self._webhooks.create_object(GROUP, self.plural, configuration)

    def unregister(self) -> None:
        self._webhooks.delete_object(GROUP, self.plural, self.name)

    def answer(self, review: Object) -> Object:
        raw = review["request"]
        self.record(AdmissionRequest(json.loads(json.dumps(raw))))
        request = AdmissionRequest(raw)
        try:
            response = self.respond(request)
        except Denied as denied:
            request.warnings += denied.warnings
            request.audit_annotations |= denied.audit
            response = {"allowed": False, "status": denied.status()}
        response["uid"] = request.uid
        if request.warnings:
            response["warnings"] = [str(text) for text in request.warnings]
        if request.audit_annotations:
            response["auditAnnotations"] = request.audit_annotations
        return {"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response}

    def respond(self, request: AdmissionRequest) -> Object:
        raise NotImplementedError

    def call_function(self, request: AdmissionRequest, obj: Object | None) -> Any:
        """Result of the function. False and texts raise Denied."""
        result = self.run(obj, request)
        if result is False or isinstance(result, str):
            raise Denied(result or "the function returned False")
        return result

    def unexpected(self, result: Any, expected: str) -> TypeError:
        return TypeError(
            f"{self.kind} {self.name} returned {type(result).__name__} {result!r:.100}; return {expected}"
        )


class ValidatingHook(AdmissionHook):
    """A function that validates objects."""

    kind = "validating webhook"
    plural = "validatingwebhookconfigurations"

    def respond(self, request: AdmissionRequest) -> Object:
        obj = request.object if request.object is not None else request.old_object
        result = self.call_function(request, obj)
        if result is not None and result is not True:
            raise self.unexpected(result, "True or None to allow, False or a message to deny")
        return {"allowed": True}


class MutatingHook(AdmissionHook):
    """A function that changes objects."""

    kind = "mutating webhook"
    plural = "mutatingwebhookconfigurations"

    def respond(self, request: AdmissionRequest) -> Object:
        before = json.loads(json.dumps(request.object))
        obj = request.object
        result = self.call_function(request, obj if obj is not None else request.old_object)
        if isinstance(result, (list, tuple)):
            patch = checked(list(result), self)
        elif result is None or result is True or isinstance(result, dict):
            changed = checked(result if isinstance(result, dict) else obj, self)
            patch = list(diff(before, changed)) if before is not None else []
        else:
            raise self.unexpected(
                result, "None, the changed object or a JSON patch; False or a message to deny"
            )
        if not patch:
            return {"allowed": True}
        encoded = base64.b64encode(json.dumps(patch).encode()).decode()
        return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


Operation = dict[str, Any]


def diff(old: Any, new: Any, path: str = "") -> Iterator[Operation]:
    """Operations that turn `old` into `new`. Lists are compared after their equal beginning and end."""
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _diff_objects(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _diff_lists(old, new, path)
    elif not _is_same(old, new):
        yield {"op": "replace", "path": path, "value": new}


def _diff_objects(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Operation]:
    for key in old:
        if key not in new:
            yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
    for key, value in new.items():
        below = f"{path}/{_escaped(key)}"
        if key in old:
            yield from diff(old[key], value, below)
        else:
            yield {"op": "add", "path": below, "value": value}


def _diff_lists(old: list[Any], new: list[Any], path: str) -> Iterator[Operation]:
    shorter = min(len(old), len(new))
    start = end = 0
    while start < shorter and _is_same(old[start], new[start]):
        start += 1
    while end < shorter - start and _is_same(old[-1 - end], new[-1 - end]):
        end += 1
    both = shorter - end
    for index in range(start, both):
        yield from diff(old[index], new[index], f"{path}/{index}")
    for index in reversed(range(both, len(old) - end)):
        yield {"op": "remove", "path": f"{path}/{index}"}
    for index in range(both, len(new) - end):
        yield {"op": "add", "path": f"{path}/{index}", "value": new[index]}


def _is_same(old: Any, new: Any) -> bool:
    """Equality of JSON values. In Python, True equals 1."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_is_same(value, new[key]) for key, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_is_same, old, new))
    return bool(old == new)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")
CONNECTED = ("exec", "attach", "portforward", "proxy")
"""Subresources whose only operation is CONNECT."""


def _make_rules(
    names: Sequence[Any],
    operations: Sequence[str] | None,
    versions: Sequence[str],
    scope: str,
    resources: Resources,
) -> list[Object]:
    """One rule for each API group of the named resources."""
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError('a webhook needs resources by name, such as @cluster.validating_webhook("pods")')
    groups: dict[str, list[str]] = {}
    for name in names:
        group, resource = _resolve(name, resources)
        groups.setdefault(group, []).append(resource)
    return [
        {
            "apiGroups": [group],
            "apiVersions": list(versions),
            "resources": entries,
            "operations": _operations(operations, entries),
            "scope": scope,
        }
        for group, entries in groups.items()
    ]


def _resolve(name: str, resources: Resources) -> tuple[str, str]:
    """Group and resource (with its subresource) of a name. Groups of CRDs that are not served yet are allowed."""
    parent, slash, subresource = name.partition("/")
    if parent == "*":
        return "*", name
    plain, dot, group = parent.partition(".")
    if plain == "*":
        return group, f"*{slash}{subresource}"
    try:
        resource = references.resource_of(resources, parent)
    except LookupError:
        if dot and "." in group and not group.endswith("k8s.io"):
            return group, f"{plain}{slash}{subresource}"
        raise
    if slash and subresource != "*" and subresource not in resource.subresources:
        hint = did_you_mean(subresource, resource.subresources)
        raise LookupError(f'{resource.resource} has no subresource "{subresource}"{hint}')
    return resource.group, f"{resource.resource}{slash}{subresource}"


def _operations(names: Iterable[str] | None, resources: Sequence[str]) -> list[str]:
    if names is None:
        connects = [resource.partition("/")[2] in CONNECTED for resource in resources]
        defaults = [] if all(connects) else ["CREATE", "UPDATE"]
        return defaults + (["CONNECT"] if any(connects) else [])
    operations = [names] if isinstance(names, str) else list(names)
    for operation in operations:
        if operation not in (*OPERATIONS, "*"):
            hint = did_you_mean(operation, OPERATIONS)
            raise ValueError(f'there is no operation "{operation}"{hint}')
    return operations
