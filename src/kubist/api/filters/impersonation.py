"""Impersonation: the Impersonate-* headers, and the permissions that they need.

Constrained modes check two permissions: to impersonate the user in this mode, and to make this request while
impersonating. The legacy mode checks only the first, with the verb `impersonate`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from kubist.api.filters.authentication.authentication import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED
from kubist.api.filters.authorization.authorization import MASTERS
from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.api.filters.usernames import account_groups, node_name, split_username
from kubist.api.request import unescape
from kubist.api.resources.context import User
from kubist.base.caching import BoundedCache
from kubist.base.http.messages import Request
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import names, status

AUTHENTICATION = "authentication.k8s.io"
NODE_NAME = "authentication.kubernetes.io/node-name"
NODE_KEYS = "authentication.kubernetes.io/associated-node-keys"
MANY = 4
"""Number of groups or extra values at which a permission for all of them is checked first."""
LONGEST = 64 << 10
"""Maximum characters of all Impersonate-* headers. Each value is authorized separately."""
LONGEST_SHOWN = 4096
"""Maximum characters of these headers that an error repeats."""
_PREFIX = "impersonate-"
_EXTRA = "impersonate-extra-"

Authorize = Callable[[AuthorizationQuery], Awaitable[tuple[bool, str]]]


def wanted_user(request: Request) -> User | None:
    """The user that the headers name; None if there are none. Raises 400 for uid, groups or extra without a
    user name, and for very long headers."""
    headers = request.headers
    if _PREFIX not in " ".join(headers):
        return None
    length = sum(len(name) + len(value) for name, value in headers.items() if name.startswith(_PREFIX))
    if length > LONGEST:
        raise status.bad_request(f"the Impersonate-* headers have more than {LONGEST} characters")
    name = (request.header_values("impersonate-user") or [""])[0]
    uid = (request.header_values("impersonate-uid") or [""])[0]
    groups = request.header_values("impersonate-group")
    extra: dict[str, list[str]] = {}
    for header in headers:
        if header.startswith(_EXTRA):
            extra.setdefault(unescape(header[len(_EXTRA) :]), []).extend(request.header_values(header))
    user = User(name, uid, tuple(groups), tuple((key, tuple(values)) for key, values in extra.items()))
    if not name and (uid or groups or extra):
        if length > LONGEST_SHOWN:
            raise status.bad_request("requested user info without impersonating a user name")
        raise status.bad_request(f"requested {_described(user)} without impersonating a user name")
    return user if name else None


def _described(user: User) -> str:
    def strings(values: tuple[str, ...]) -> str:
        return f"[]string{{{', '.join(map(quoted, values))}}}" if values else "[]string(nil)"

    pairs = ", ".join(f"{quoted(key)}:{strings(values)}" for key, values in sorted(user.extra))
    extra = f"map[string][]string{{{pairs}}}" if pairs else "map[string][]string(nil)"
    uid, groups = quoted(user.uid), strings(user.groups)
    return f'&user.DefaultInfo{{Name:"", UID:{uid}, Groups:{groups}, Extra:{extra}}}'


class Mode:
    """Impersonation mode. `constraint` is the verb. Audit events record it, except in the legacy mode."""

    constraint = "impersonate"
    group = ""
    """API group of the resources users, groups and serviceaccounts in the check."""

    def __init__(self, authorize: Authorize) -> None:
        self._authorize = authorize

    async def user(self, target: User, attributes: AuthorizationQuery) -> User | None:
        """The impersonated user; None if the mode does not apply; APIError if it is not allowed."""
        return await self._permitted(target, attributes.user)

    async def _permitted(self, target: User, requester: User) -> User:
        """Checks name, uid, groups and extra of the target user, and returns the user with its final groups."""
        groups = await self._check_name(target, requester)
        if target.uid:
            await self._check(requester, AUTHENTICATION, "uids", target.uid)
        await self._check_groups(target.groups, requester)
        await self._check_extra(target, requester)
        if target.name == ANONYMOUS.name:
            if UNAUTHENTICATED not in groups:
                groups = (*groups, UNAUTHENTICATED)
        elif UNAUTHENTICATED not in groups and AUTHENTICATED not in groups:
            groups = (*groups, AUTHENTICATED)
        return User(target.name, target.uid, groups, target.extra)

    async def _check_name(self, target: User, requester: User) -> tuple[str, ...]:
        """Checks the user name. Returns the requested groups, or the groups of a service account."""
        account = split_username(target.name)
        if account is None:
            await self._check(requester, self.group, "users", target.name)
            return target.groups
        await self._check(requester, self.group, "serviceaccounts", account[1], namespace=account[0])
        return target.groups or account_groups(account[0])

    async def _check_groups(self, groups: tuple[str, ...], requester: User) -> None:
        for group in groups:
            await self._check(requester, self.group, "groups", group)

    async def _check_extra(self, target: User, requester: User) -> None:
        for key, values in target.extra:
            for value in values:
                await self._check(requester, AUTHENTICATION, "userextras", value, subresource=key)

    def _question(
        self, who: User, group: str, resource: str, name: str, namespace: str = "", subresource: str = ""
    ) -> AuthorizationQuery:
        return AuthorizationQuery(
            who, self.constraint, "", True, group, "v1", resource, subresource, namespace, name
        )

    async def _check(
        self, who: User, group: str, resource: str, name: str, namespace: str = "", subresource: str = ""
    ) -> None:
        await self._ask(self._question(who, group, resource, name, namespace, subresource))

    async def _ask(self, attributes: AuthorizationQuery) -> None:
        allowed, reason = await self._authorize(attributes)
        if not allowed:
            raise attributes.forbidden(reason)


class ConstrainedMode(Mode):
    """Mode that also checks whether the request itself may be made while impersonating."""

    name = ""
    group = AUTHENTICATION

    def __init__(self, authorize: Authorize) -> None:
        super().__init__(authorize)
        self.constraint = f"impersonate:{self.name}"

    def applies(self, target: User, requester: User) -> bool:
        raise AssertionError("subclasses must define applies()")

    async def user(self, target: User, attributes: AuthorizationQuery) -> User | None:
        if not self.applies(target, attributes.user):
            return None
        await self._ask(replace(attributes, verb=f"impersonate-on:{self.name}:{attributes.verb}"))
        return await self._permitted(target, attributes.user)


class UserInfo(ConstrainedMode):
    """Mode for users that are neither nodes nor service accounts, with uid, groups and extra."""

    name = "user-info"

    def applies(self, target: User, requester: User) -> bool:
        return node_name(target.name) is None and split_username(target.name) is None

    async def _check_groups(self, groups: tuple[str, ...], requester: User) -> None:
        if "" in groups:
            question = self._question(requester, self.group, "groups", "")
            raise question.forbidden("impersonating the empty string group is not allowed")
        if MASTERS in groups:
            question = self._question(requester, self.group, "groups", MASTERS)
            raise question.forbidden("impersonating the system:masters group is not allowed")
        if len(groups) >= MANY and await self._all(requester, self.group, "groups", ""):
            return
        await super()._check_groups(groups, requester)

    async def _check_extra(self, target: User, requester: User) -> None:
        refused = _refused_extra(target)
        if refused:
            raise self._question(requester, AUTHENTICATION, "userextras", "").forbidden(refused)
        many = len(target.extra) >= MANY or sum(len(values) for _, values in target.extra) >= MANY
        if many and await self._all(requester, AUTHENTICATION, "userextras", "*"):
            return
        await super()._check_extra(target, requester)

    async def _all(self, requester: User, group: str, resource: str, subresource: str) -> bool:
        question = self._question(requester, group, resource, "*", subresource=subresource)
        return (await self._authorize(question))[0]


class ServiceAccount(ConstrainedMode):
    name = "serviceaccount"

    def applies(self, target: User, requester: User) -> bool:
        return _only_name(target) and split_username(target.name) is not None


class ArbitraryNode(ConstrainedMode):
    name = "arbitrary-node"

    def applies(self, target: User, requester: User) -> bool:
        return _only_name(target) and node_name(target.name) is not None

    async def _check_name(self, target: User, requester: User) -> tuple[str, ...]:
        await self._check(requester, self.group, "nodes", self._asked(node_name(target.name) or ""))
        return ("system:nodes",)

    def _asked(self, node: str) -> str:
        return node


class AssociatedNode(ArbitraryNode):
    """Mode for a service account that impersonates the node of its own pod. The check covers all nodes at
    once ("*")."""

    name = "associated-node"

    def applies(self, target: User, requester: User) -> bool:
        if not super().applies(target, requester) or split_username(requester.name) is None:
            return False
        return dict(requester.extra).get(NODE_NAME) == (node_name(target.name),)

    def _asked(self, node: str) -> str:
        return "*"

    async def user(self, target: User, attributes: AuthorizationQuery) -> User | None:
        if not self.applies(target, attributes.user):
            return None
        keys = tuple(sorted(key for key, _ in attributes.user.extra))
        requester = replace(attributes.user, extra=((NODE_KEYS, keys),))
        attributes = replace(attributes, user=requester)
        await self._ask(replace(attributes, verb=f"impersonate-on:{self.name}:{attributes.verb}"))
        return await self._permitted(target, requester)


class Impersonation:
    """All modes. The mode that last worked for a requester is tried first. If all fail, the first error is returned."""

    def __init__(self, authorize: Authorize, *, constrained: bool = True) -> None:
        """`constrained`: whether the constrained modes exist besides the legacy mode."""
        modes = (AssociatedNode, ArbitraryNode, ServiceAccount, UserInfo, Mode) if constrained else (Mode,)
        self._modes = [mode(authorize) for mode in modes]
        self._last: BoundedCache[str, Mode] = BoundedCache(entries=10_000, key_length=256)

    async def impersonate(self, target: User, attributes: AuthorizationQuery) -> tuple[User, str]:
        """The impersonated user and the constraint of the mode (empty for the legacy mode). Raises the first
        mode's 403."""
        refusal: status.APIError | None = None
        requester = attributes.user.name
        last = self._last.get(requester)
        modes = [last, *(mode for mode in self._modes if mode is not last)] if last else self._modes
        for mode in modes:
            try:
                user = await mode.user(target, attributes)
            except status.APIError as error:
                refusal = refusal or error
                continue
            if user is not None:
                self._last[requester] = mode
                return user, "" if mode.constraint == "impersonate" else mode.constraint
        assert refusal is not None
        raise refusal


def _only_name(user: User) -> bool:
    return not (user.uid or user.groups or user.extra)


def _refused_extra(user: User) -> str:
    """Error message for extra keys or values that constrained modes never allow; empty if there is none."""
    for key, values in user.extra:
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        domain, slash, path = key.partition("/")
        if not slash or not path or names.dns_subdomain(domain):
            why = f"extra.key: Invalid value: {quoted(key)}: must be a domain-prefixed path"
            return f"impersonating an invalid key in extra is not allowed: {why}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {quoted(key)}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""
