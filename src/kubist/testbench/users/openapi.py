"""Schemas of users and of authorization webhooks."""

from __future__ import annotations

from kubist.model.meta.object import Object
from kubist.testbench.control_api.schemas import DURATION, closed, list_of, text

_OBJECTS: Object = {"type": "array", "items": {"type": "object"}}
_USER: Object = {
    "name": {"type": "string", "minLength": 1, "maxLength": 253},
    "groups": {"type": "array", "items": {"type": "string"}},
    "namespace": text("Namespace in which the rules hold. Empty: in the whole cluster."),
}
_NAMED: Object = {key: _USER[key] for key in ("name", "namespace")}
_ACCOUNT: Object = {
    "name": text("DNS subdomain name."),
    "namespace": text("Namespace of the account, `default` by default. It is created if it is missing."),
}
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
    "ServiceAccountRequest": closed(
        _ACCOUNT | {"rules": _OBJECTS | {"description": "RBAC rules of a Role."}}, "name"
    ),
    "NewServiceAccount": closed(
        _ACCOUNT
        | {
            "user": text("Name of the user: system:serviceaccount:NAMESPACE:NAME."),
            "token": text("Bearer token of the account, valid for 24 hours."),
            "kubeconfig": {"$ref": "#/components/schemas/Kubeconfig"},
        },
        "name",
        "namespace",
        "user",
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
USER_BODIES = {
    ("POST", "users"): "UserRequest",
    ("POST", "serviceaccounts"): "ServiceAccountRequest",
    ("POST", "authorizers"): "Authorizer",
}
USER_RESULTS = {
    ("GET", "users"): "UserList",
    ("POST", "users"): "NewUser",
    ("POST", "serviceaccounts"): "NewServiceAccount",
    ("GET", "authorizers"): "AuthorizerList",
    ("POST", "authorizers"): "Authorizer",
}
