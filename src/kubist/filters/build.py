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

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubist.config import Config
    from kubist.filters.tokens import KeySet, TokenSigner
    from kubist.http.messages import Answer, Request
    from kubist.http.pool import Pool
    from kubist.registry import Registry


def audiences(config: Config) -> tuple[str, ...]:
    """What the server calls itself in tokens."""
    return config.api_audiences or config.service_account_issuer[:1]


def authentication(config: Config, registry: Registry, connections: Pool | None = None) -> Authentication:
    """Who is known. Where everything is allowed, at least nobody is anonymous."""
    return Authentication(
        _tokens(config, registry, connections),
        anonymous=config.anonymous_auth and "AlwaysAllow" not in config.authorization_mode,
        audiences=audiences(config),
        requests=_requests(config),
    )


def _requests(config: Config) -> list[RequestAuthenticator]:
    """Who is known by a certificate. Where proxies have an authority too, each is believed for its own."""
    if not config.requestheader_client_ca_file:
        return [ClientCertificates()] if config.client_ca_file else []
    from kubist.filters.requestheader import Authorities, RequestHeaders

    proxies: RequestAuthenticator = RequestHeaders(
        Authorities(config.requestheader_client_ca_file).issued,
        config.requestheader_allowed_names,
        config.requestheader_username_headers,
        config.requestheader_group_headers,
        config.requestheader_extra_headers_prefix,
        config.requestheader_uid_headers,
    )
    if not config.client_ca_file:
        return [proxies]
    return [proxies, ClientCertificates(Authorities(config.client_ca_file).issued)]


def _tokens(config: Config, registry: Registry, connections: Pool | None) -> list[TokenAuthenticator]:
    found: list[TokenAuthenticator] = []
    own = audiences(config)
    if config.token_auth_file:
        found.append(TokenFile(config.token_auth_file, own))
    keys = service_account_keys(config)
    if keys is not None:
        from kubist.filters.serviceaccounts import ServiceAccountTokens

        found.append(ServiceAccountTokens(registry, keys, config.service_account_issuer, own))
    if config.enable_bootstrap_token_auth:
        from kubist.filters.bootstraptokens import BootstrapTokens

        found.append(BootstrapTokens(registry, own))
    if config.oidc_issuer_url:
        found.append(_oidc(config))
    if config.authentication_token_webhook_config_file:
        from kubist.filters.kubeconfig import RemoteReview
        from kubist.filters.webhooks import WebhookTokens

        remote = RemoteReview(config.authentication_token_webhook_config_file, connections)
        version = config.authentication_token_webhook_version
        ttl = config.authentication_token_webhook_cache_ttl
        found.append(WebhookTokens(remote, version, own, ttl))
    return found


def _oidc(config: Config) -> TokenAuthenticator:
    """The issuer of the `--oidc-*` flags."""
    from kubist.filters.jwtconfig import issuer_of_flags
    from kubist.filters.oidc import OIDC

    return OIDC(issuer_of_flags(config), audiences(config))


def service_account_keys(config: Config) -> KeySet | None:
    """What service account tokens are verified with; by default the key that signs them."""
    files = config.service_account_key_file or (config.service_account_signing_key_file,)
    if not any(files):
        return None
    from kubist.filters.tokens import key_set, read_public_keys

    return key_set(key for file in files if file for key in read_public_keys(file))


def token_signer(config: Config) -> TokenSigner | None:
    """What signs service account tokens; None without a signing key."""
    if not config.service_account_signing_key_file:
        return None
    from kubist.filters.tokens import TokenSigner

    return TokenSigner.from_config(config)


def openid(config: Config) -> dict[str, Callable[[Request], Answer]]:
    """The paths that tell of the issuer of service account tokens."""
    keys = service_account_keys(config)
    if keys is None or not config.service_account_issuer:
        return {}
    host = f"{config.advertise_address or '127.0.0.1'}:{config.secure_port}"
    uri = config.service_account_jwks_uri or f"https://{host}{KEYS}"
    return openid_paths(config.service_account_issuer[0], uri, keys)


def authorization(config: Config, registry: Registry, connections: Pool | None = None) -> Authorization:
    rbac = RBAC(registry)
    modes = [_authorizer(mode, config, registry, rbac, connections) for mode in config.authorization_mode]
    return Authorization(modes, rbac)


def _authorizer(
    mode: str, config: Config, registry: Registry, rbac: RBAC, connections: Pool | None
) -> Authorizer:
    match mode:
        case "AlwaysAllow":
            return AlwaysAllow()
        case "AlwaysDeny":
            return AlwaysDeny()
        case "RBAC":
            return rbac
        case "Node":
            from kubist.filters.node import Nodes

            return Nodes(registry)
        case "ABAC":
            from kubist.filters.abac import ABAC

            return ABAC(config.authorization_policy_file)
        case "Webhook":
            from kubist.filters.kubeconfig import RemoteReview
            from kubist.filters.webhooks import Webhook

            return Webhook(
                RemoteReview(config.authorization_webhook_config_file, connections),
                config.authorization_webhook_version,
                config.authorization_webhook_cache_authorized_ttl,
                config.authorization_webhook_cache_unauthorized_ttl,
            )
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
    log = AuditLog(
        config.audit_log_path, config.audit_log_maxsize, config.audit_log_maxbackup, config.audit_log_maxage
    )
    return Audit(AuditPolicy.read(config.audit_policy_file), log)
