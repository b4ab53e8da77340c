"""Schemas of users and of authorization webhooks."""

from __future__ import annotations

from kubist.bench.schemas import DURATION, closed, list_of, text
from kubist.meta.object import Object

_OBJECTS: Object = {"type": "array", "items": {"type": "object"}}
_USER: Object = {
    "name": {"type": "string", "minLength": 1, "maxLength": 253},
    "groups": {"type": "array", "items": {"type": "string"}},
    "namespace": text("Namespace in which the rules hold. Empty: in the whole cluster."),
}
_NAMED: Object = {key: _USER[key] for key in ("name", "namespace")}
USER_SCHEMAS: dict[str, Object] = {
    "UserRequest": closed(_USER | {"rules": _OBJECTS | {"description": "RBAC rules of a Role."}}, "name"),
    "NewUser": closed(
        _USER
        | {
            "token": text("Bearer token of the user."),
            "kubeconfig": {"$ref": "#/components/schemas/Kubeconfig"},
        },
        "name",
        "token",
        "kubeconfig",
    ),
    "User": closed(_NAMED, "name"),
    "UserList": list_of("User"),
    "Kubeconfig": closed(
        {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "clusters": _OBJECTS,
            "users": _OBJECTS,
            "contexts": _OBJECTS,
            "current-context": {"type": "string"},
        },
        "clusters",
        "users",
        "contexts",
    )
    | {"description": "Kubeconfig. JSON is YAML, so it can be written to a file as it is."},
    "Authorizer": closed(
        {
            "name": {"type": "string"},
            "clientConfig": closed(
                {
                    "url": text("https://host[:port]/path of the webhook."),
                    "caBundle": text("Base64 of the CA certificates in PEM."),
                },
                "url",
            ),
            "timeout": DURATION,
            "failurePolicy": {"type": "string", "enum": ["Deny", "NoOpinion"]},
        },
        "name",
        "clientConfig",
    ),
    "AuthorizerList": list_of("Authorizer"),
}
USER_BODIES = {("POST", "users"): "UserRequest", ("POST", "authorizers"): "Authorizer"}
USER_RESULTS = {
    ("GET", "users"): "UserList",
    ("POST", "users"): "NewUser",
    ("GET", "authorizers"): "AuthorizerList",
    ("POST", "authorizers"): "Authorizer",
}
