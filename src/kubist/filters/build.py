"""Authentication and authorization as the flags describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.filters.audit import Audit, AuditLog
from kubist.filters.auditpolicy import AuditPolicy
from kubist.filters.authentication import (
    Authentication,
    ClientCertificates,
    RequestAuthenticator,
    TokenAuthenticator,
    TokenFile,
)
from kubist.filters.authorization import AlwaysAllow, AlwaysDeny, Authorization, Authorizer
from kubist.filters.flowcontrol import FlowControl, InFlight
from kubist.filters.openid import KEYS, openid_paths
from kubist.filters.rbac import RBAC
from kubist.filters.serviceaccounts import ServiceAccountTokens
from kubist.filters.tokens import KeySet, key_set, read_public_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubist.config import Config
    from kubist.http.messages import Answer, Request
    from kubist.registry import Registry


def audiences(config: Config) -> tuple[str, ...]:
    """What the server calls itself in tokens."""
    return config.api_audiences or config.service_account_issuer[:1]


def authentication(config: Config, registry: Registry) -> Authentication:
    requests: list[RequestAuthenticator] = []
    if config.client_ca_file:
        requests.append(ClientCertificates())
    return Authentication(
        _tokens(config, registry),
        anonymous=config.anonymous_auth,
        audiences=audiences(config),
        requests=requests,
    )


def _tokens(config: Config, registry: Registry) -> list[TokenAuthenticator]:
    found: list[TokenAuthenticator] = []
    own = audiences(config)
    if config.token_auth_file:
        found.append(TokenFile(config.token_auth_file, own))
    keys = service_account_keys(config)
    if keys is not None:
        found.append(ServiceAccountTokens(registry, keys, config.service_account_issuer, own))
    return found


def service_account_keys(config: Config) -> KeySet | None:
    """What service account tokens are verified with; by default the key that signs them."""
    files = config.service_account_key_file or (config.service_account_signing_key_file,)
    keys = [key for file in files if file for key in read_public_keys(file)]
    return key_set(keys) if keys else None


def openid(config: Config) -> dict[str, Callable[[Request], Answer]]:
    """The paths that tell of the issuer of service account tokens."""
    keys = service_account_keys(config)
    if keys is None or not config.service_account_issuer:
        return {}
    host = f"{config.advertise_address or '127.0.0.1'}:{config.secure_port}"
    uri = config.service_account_jwks_uri or f"https://{host}{KEYS}"
    return openid_paths(config.service_account_issuer[0], uri, keys)


def authorization(config: Config, registry: Registry) -> Authorization:
    rbac = RBAC(registry)
    return Authorization([_authorizer(mode, rbac) for mode in config.authorization_mode], rbac)


def _authorizer(mode: str, rbac: RBAC) -> Authorizer:
    match mode:
        case "AlwaysAllow":
            return AlwaysAllow()
        case "AlwaysDeny":
            return AlwaysDeny()
        case "RBAC":
            return rbac
    raise ValueError(f"{mode!r} is not a mode of authorization")


def limits(config: Config, registry: Registry) -> FlowControl | InFlight | None:
    """How many requests may be under way. Without any limit: None."""
    reading, writing = config.max_requests_inflight, config.max_mutating_requests_inflight
    if config.enable_priority_and_fairness and reading + writing > 0:
        return FlowControl(registry, reading + writing, config.request_timeout / 4)
    return InFlight(reading, writing) if reading or writing else None


def audit(config: Config) -> Audit | None:
    """The audit log, if one is asked for and a policy says what goes into it."""
    if not config.audit_log_path or not config.audit_policy_file:
        return None
    return Audit(AuditPolicy.read(config.audit_policy_file), AuditLog(config.audit_log_path))
