"""Users for tests: a name, groups and RBAC rules in one request, answered with a token and a kubeconfig."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from pathlib import Path
from typing import Annotated

from kubist.api.application import API
from kubist.api.filters.authentication.authentication import Audiences, Known, accepted, with_groups
from kubist.api.resources.context import User
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.testbench.control_api.body import Body, JSONName
from kubist.testbench.control_api.control_api import Call, ControlAPI, Operation
from kubist.testbench.control_api.field_types import GROUP, Fields, FieldType, objects

RBAC = "rbac.authorization.k8s.io"
MOST = 1000
"""Maximum number of users."""
NAME_LENGTH = 253
_PLAIN = re.compile(r"[A-Za-z0-9.@:_-]+")


USER_NAME = FieldType(
    {"type": "string", "minLength": 1, "maxLength": NAME_LENGTH}, str, "a string", absent=""
)


class WithRules(Body):
    rules: Annotated[list[Object] | None, objects("RBAC rules"), "RBAC rules of a Role."] = None


class _Identity(Body):
    name: Annotated[str, USER_NAME]
    groups: tuple[str, ...] = ()
    namespace: Annotated[str, "Namespace in which the rules hold. Empty: in the whole cluster."] = ""


class UserRequest(_Identity, WithRules):
    def check(self, fields: Fields) -> None:
        if not 0 < len(self.name) <= NAME_LENGTH:
            fields.reject("name", self.name, f"must have 1 to {NAME_LENGTH} characters")


class Kubeconfig(Body):
    """Kubeconfig. JSON is YAML, so it can be written to a file as it is."""

    api_version: str | None
    kind: str | None
    clusters: list[Object]
    users: list[Object]
    contexts: list[Object]
    current_context: Annotated[str | None, JSONName("current-context")]


class NewUser(_Identity):
    token: Annotated[str, "Bearer token of the user."]
    kubeconfig: Kubeconfig


class ListedUser(Body):
    name: Annotated[str, USER_NAME]
    namespace: Annotated[str | None, "Namespace in which the rules hold. Empty: in the whole cluster."]


class Tokens:
    """Authenticates the tokens of these users. They are valid until the server stops."""

    def __init__(self, audiences: Audiences) -> None:
        self._audiences = audiences
        self.users: dict[str, User] = {}

    async def authenticate(self, token: str, audiences: Audiences) -> Known | None:
        user = self.users.get(token)
        shared = accepted(self._audiences, audiences) if user is not None else None
        return (user, shared) if user is not None and shared is not None else None


class Users:
    """`/kubist/v1/users`."""

    def __init__(self, api: API) -> None:
        self._api = api
        self._tokens = Tokens(api.authentication.audiences)
        self._made: dict[str, tuple[str, str]] = {}
        """Token and namespace of each user."""

    def __len__(self) -> int:
        return len(self._made)

    def register(self, control: ControlAPI) -> None:
        control.add(
            Operation("GET", "users", self._list, result="UserList"),
            Operation("POST", "users", self._create, body="UserRequest", result="NewUser", code=201),
            Operation("DELETE", "users/{name...}", self._delete, code=204),
        )

    def add_from(self, other: Users) -> None:
        """Adds the users of another server, with their tokens."""
        if other._made and not self._made:
            self._api.authentication.tokens.append(self._tokens)
        self._made.update(other._made)
        self._tokens.users.update(other._tokens.users)

    async def _list(self, _: Call) -> Object:
        """Users that were created here."""
        users = [{"name": name, "namespace": namespace} for name, (_, namespace) in self._made.items()]
        return {"items": users}

    async def _create(self, call: Call) -> Object:
        """Creates a user: `name`, `groups`, RBAC `rules` and their `namespace`. Returns a token and a kubeconfig."""
        request = call.read("User", UserRequest)
        name, namespace = request.name, request.namespace
        if name in self._made:
            raise status.already_exists(GROUP, "users", name)
        if len(self._made) >= MOST:
            raise status.bad_request(f"there are already {MOST} users")
        if namespace and self._api.cluster.get("namespaces", namespace) is None:
            raise status.not_found("", "namespaces", namespace)
        if request.rules:
            await self._grant(name, namespace, request.rules)
        token = secrets.token_urlsafe(24)
        if not self._made:
            self._api.authentication.tokens.append(self._tokens)
        self._tokens.users[token] = with_groups(User(name, groups=request.groups))
        self._made[name] = token, namespace
        made = {"name": name, "groups": list(request.groups), "namespace": namespace, "token": token}
        return made | {"kubeconfig": kubeconfig(self._api, call, name, namespace, token)}

    async def _grant(self, name: str, namespace: str, rules: list[Object]) -> None:
        """Creates a role with the rules and binds it to the user: in one namespace, or in the cluster."""
        kind = "Role" if namespace else "ClusterRole"
        role = role_name(name)
        subject = {"kind": "User", "apiGroup": RBAC, "name": name}
        binding = {
            "metadata": {"name": role},
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
            "subjects": [subject],
        }
        objects, plural = self._api.cluster, f"{kind.lower()}s"
        await objects.create(plural, {"metadata": {"name": role}, "rules": rules}, namespace, group=RBAC)
        try:
            await objects.create(f"{kind.lower()}bindings", binding, namespace, group=RBAC)
        except status.APIError:
            await objects.delete(plural, role, namespace, group=RBAC)
            raise

    async def _delete(self, call: Call) -> None:
        """Deletes a user with the role and binding of its rules."""
        name = call.params["name"]
        made = self._made.pop(name, None)
        if made is None:
            raise status.not_found(GROUP, "users", name)
        token, namespace = made
        del self._tokens.users[token]
        if not self._made:
            self._api.authentication.tokens.remove(self._tokens)
        kinds = ("rolebindings", "roles") if namespace else ("clusterrolebindings", "clusterroles")
        for plural in kinds:
            if self._api.cluster.get(plural, role_name(name), namespace, group=RBAC) is not None:
                await self._api.cluster.delete(plural, role_name(name), namespace, group=RBAC)


def kubeconfig(api: API, call: Call, name: str, namespace: str, token: str) -> Object:
    """Kubeconfig for the address at which the caller reached this server."""
    host = call.request.headers.get("host") or call.request.headers.get(":authority", "")
    cluster: Object = {"server": f"https://{host}{api.config.url_prefix}"}
    authority = api.config.root_ca_file
    if authority:
        raw = Path(authority).read_bytes()
        cluster["certificate-authority-data"] = base64.b64encode(raw).decode()
    context = {"cluster": "kubist", "user": name}
    if namespace:
        context["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kubist", "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": "kubist", "context": context}],
        "current-context": "kubist",
    }


def role_name(user: str) -> str:
    """Name of the role of a user. Role names cannot contain every character of user names."""
    if _PLAIN.fullmatch(user):
        return f"kubist-user:{user}"
    return f"kubist-user:{hashlib.sha256(user.encode()).hexdigest()[:32]}"
