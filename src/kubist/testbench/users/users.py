"""Users for tests: a name, groups and RBAC rules in one request, answered with a token and a kubeconfig."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from pathlib import Path

from kubist.api.application import API
from kubist.api.filters.authentication.audiences import Audiences, accepted
from kubist.api.filters.authentication.authentication import Known, with_groups
from kubist.api.resources.context import User
from kubist.base.http.messages import Response
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.testbench.control_api.call import GROUP, Call, Fields
from kubist.testbench.control_api.control_api import ControlAPI, json_response

RBAC = "rbac.authorization.k8s.io"
MOST = 1000
"""Maximum number of users."""
NAME_LENGTH = 253
_PLAIN = re.compile(r"[A-Za-z0-9.@:_-]+")


class Tokens:
    """Authenticates the tokens of these users. They are valid until the server stops."""

    def __init__(self, audiences: Audiences) -> None:
        self._audiences = audiences
        self.users: dict[str, User] = {}

    async def authenticate(self, token: str, audiences: Audiences) -> Known | None:
        user = self.users.get(token)
        found = accepted(self._audiences, audiences) if user is not None else None
        return (user, found) if user is not None and found is not None else None


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
        control.add("GET", "users", self._list)
        control.add("POST", "users", self._create)
        control.add("DELETE", "users/{name...}", self._delete)

    def add_from(self, other: Users) -> None:
        """Adds the users of another server, with their tokens."""
        if other._made and not self._made:
            self._api.authentication.tokens.append(self._tokens)
        self._made.update(other._made)
        self._tokens.users.update(other._tokens.users)

    async def _list(self, _: Call) -> Object:
        """Users that were created here."""
        shown = [{"name": name, "namespace": namespace} for name, (_, namespace) in self._made.items()]
        return {"items": shown}

    async def _create(self, call: Call) -> Response:
        """Creates a user: `name`, `groups`, RBAC `rules` and their `namespace`. Returns a token and a kubeconfig."""
        asked = call.fields("User")
        name, groups, namespace = asked.text("name"), asked.texts("groups"), asked.text("namespace")
        rules = read_rules(asked)
        if not name or len(name) > NAME_LENGTH:
            asked.reject("name", name, f"must have 1 to {NAME_LENGTH} characters")
        asked.done()
        if name in self._made:
            raise status.already_exists(GROUP, "users", name)
        if len(self._made) >= MOST:
            raise status.bad_request(f"there are already {MOST} users")
        if namespace and self._api.cluster.get("namespaces", namespace) is None:
            raise status.not_found("", "namespaces", namespace)
        if rules:
            await self._grant(name, namespace, rules)
        token = secrets.token_urlsafe(24)
        if not self._made:
            self._api.authentication.tokens.append(self._tokens)
        self._tokens.users[token] = with_groups(User(name, groups=groups))
        self._made[name] = token, namespace
        made = {"name": name, "groups": list(groups), "namespace": namespace, "token": token}
        return json_response(made | {"kubeconfig": kubeconfig(self._api, call, name, namespace, token)}, 201)

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


def read_rules(asked: Fields) -> list[Object]:
    """RBAC rules of a request."""
    rules = asked.take("rules")
    if rules is None:
        return []
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        asked.reject("rules", rules, "must be a list of RBAC rules")
        return []
    return rules


def role_name(user: str) -> str:
    """Name of the role of a user. Role names cannot contain every character of user names."""
    if _PLAIN.fullmatch(user):
        return f"kubist-user:{user}"
    return f"kubist-user:{hashlib.sha256(user.encode()).hexdigest()[:32]}"
