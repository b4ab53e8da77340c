"""Names of users that Kubernetes itself gives: service accounts and nodes."""

from __future__ import annotations

from kubist.meta import names

PREFIX = "system:serviceaccount:"
NODE_PREFIX = "system:node:"


def username(namespace: str, name: str) -> str:
    return f"{PREFIX}{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def split_username(user: str) -> tuple[str, str] | None:
    """Namespace and name of the account that a user is; None if it is none."""
    if not user.startswith(PREFIX):
        return None
    parts = user[len(PREFIX) :].split(":")
    if len(parts) != 2 or names.dns_label(parts[0]) or names.dns_subdomain(parts[1]):
        return None
    return parts[0], parts[1]


def node_name(user: str) -> str | None:
    """The node that a user is; None if it is none."""
    name = user.removeprefix(NODE_PREFIX)
    return None if name == user or names.dns_subdomain(name) else name
