"""CEL types of admission expressions: the request, its objects, the namespace, the authorizer.

Types only; the values are in `kubist.api.admission.policies`.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any

from kubist.model.cel import BOOL, DYN, INT, STRING, Overload, Type, list_of, map_of, object_type

TIMESTAMP = Type("timestamp")
STRINGS = map_of(STRING, STRING)

_KIND = object_type("kubernetes.GroupVersionKind", dict.fromkeys(("group", "version", "kind"), STRING))
_RESOURCE = object_type(
    "kubernetes.GroupVersionResource", dict.fromkeys(("group", "version", "resource"), STRING)
)
_USER = object_type(
    "kubernetes.UserInfo",
    {
        "username": STRING,
        "uid": STRING,
        "groups": list_of(STRING),
        "extra": map_of(STRING, list_of(STRING)),
    },
)
REQUEST = object_type(
    "kubernetes.AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
)

_CONDITION = object_type(
    "kubernetes.NamespaceCondition",
    {
        **dict.fromkeys(("status", "type", "message", "reason"), STRING),
        "lastTransitionTime": TIMESTAMP,
    },
)
NAMESPACE = object_type(
    "kubernetes.Namespace",
    {
        "metadata": object_type(
            "kubernetes.NamespaceMetadata",
            {
                **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
                **dict.fromkeys(("labels", "annotations"), STRINGS),
                **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), TIMESTAMP),
                **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
                "finalizers": list_of(STRING),
            },
        ),
        "spec": object_type("kubernetes.NamespaceSpec", {"finalizers": list_of(STRING)}),
        "status": object_type(
            "kubernetes.NamespaceStatus", {"conditions": list_of(_CONDITION), "phase": STRING}
        ),
    },
)

_AUTHZ = "kubernetes.authorization."
RESOURCE_CHECK = object_type(f"{_AUTHZ}ResourceCheck", {})
PATH_CHECK = object_type(f"{_AUTHZ}PathCheck", {})
GROUP_CHECK = object_type(f"{_AUTHZ}GroupCheck", {})
DECISION = object_type(f"{_AUTHZ}Decision", {})
AUTHORIZER = object_type(f"{_AUTHZ}Authorizer", {"requestResource": RESOURCE_CHECK})

Function = tuple[list[Overload], Callable[..., Any]]


def _method(name: str, *overloads: tuple[str, tuple[Type, ...], Type]) -> Function:
    """CEL member function that calls the target's Python method of the same name in snake case."""
    spelled = "".join(f"_{char.lower()}" if char.isupper() else char for char in name)

    def call(target: Any, *args: Any) -> Any:
        return methodcaller(spelled, *args)(target)

    return [Overload(id_, args, result, True) for id_, args, result in overloads], call


AUTHORIZER_FUNCTIONS: dict[str, Function] = {
    name: _method(name, *overloads)
    for name, overloads in {
        "path": (("authorizer_path", (AUTHORIZER, STRING), PATH_CHECK),),
        "group": (("authorizer_group", (AUTHORIZER, STRING), GROUP_CHECK),),
        "serviceAccount": (("authorizer_serviceaccount", (AUTHORIZER, STRING, STRING), AUTHORIZER),),
        "resource": (("groupcheck_resource", (GROUP_CHECK, STRING), RESOURCE_CHECK),),
        "subresource": (("resourcecheck_subresource", (RESOURCE_CHECK, STRING), RESOURCE_CHECK),),
        "namespace": (("resourcecheck_namespace", (RESOURCE_CHECK, STRING), RESOURCE_CHECK),),
        "name": (("resourcecheck_name", (RESOURCE_CHECK, STRING), RESOURCE_CHECK),),
        "fieldSelector": (("authorizer_fieldselector", (RESOURCE_CHECK, STRING), RESOURCE_CHECK),),
        "labelSelector": (("authorizer_labelselector", (RESOURCE_CHECK, STRING), RESOURCE_CHECK),),
        "check": (
            ("pathcheck_check", (PATH_CHECK, STRING), DECISION),
            ("resourcecheck_check", (RESOURCE_CHECK, STRING), DECISION),
        ),
        "errored": (("decision_errored", (DECISION,), BOOL),),
        "error": (("decision_error", (DECISION,), STRING),),
        "allowed": (("decision_allowed", (DECISION,), BOOL),),
        "reason": (("decision_reason", (DECISION,), STRING),),
    }.items()
}

JSON_PATCH = object_type("JSONPatch", {"op": STRING, "path": STRING, "from": STRING, "value": DYN})
OBJECT = "Object"


def escape_key(text: str) -> str:
    """Escapes a key for use as one segment of a JSON pointer."""
    return text.replace("~", "~0").replace("/", "~1")


PATCH_FUNCTIONS: dict[str, Function] = {
    "jsonpatch.escapeKey": (
        [Overload("string_jsonpatch_escapeKey_string", (STRING,), STRING, False)],
        escape_key,
    )
}


class _AnyField(dict[str, Type]):
    """Fields of an object without schema: every name exists and has type DYN."""

    def get(self, key: str, default: Any = None) -> Type:
        return DYN


class PatchTypes(dict[str, Type]):
    """Variables plus the types of mutations: `JSONPatch`, `Object`, `Object.<field>`…"""

    def __init__(self, variables: dict[str, Type]) -> None:
        super().__init__({**variables, "JSONPatch{}": JSON_PATCH})

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and _is_object(name))

    def __missing__(self, name: str) -> Type:
        return object_type(name.removesuffix("{}"), _AnyField())


def _is_object(name: str) -> bool:
    return name == f"{OBJECT}{{}}" or (name.startswith(f"{OBJECT}.") and name.endswith("{}"))
