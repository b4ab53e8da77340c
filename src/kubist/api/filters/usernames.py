"""User names that Kubernetes defines: service accounts and nodes."""

from __future__ import annotations

from kubist.model.meta import names

PREFIX = "system:serviceaccount:"
NODE_PREFIX = "system:node:"


def username(namespace: str, name: str) -> str:
    return f"{PREFIX}{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def split_username(user: str) -> tuple[str, str] | None:
    """Namespace and name of the service account with this user name; None for other users."""
    if not user.startswith(PREFIX):
        return None
    parts = user[len(PREFIX) :].split(":")
    if len(parts) != 2 or names.dns_label(parts[0]) or names.dns_subdomain(parts[1]):
        return None
    return parts[0], parts[1]


def node_name(user: str) -> str | None:
    """Name of the node with this user name; None for other users."""
    name = user.removeprefix(NODE_PREFIX)
    return None if name == user or names.dns_subdomain(name) else name
