"""Builds authentication, authorization, flow control and audit from the flags."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kubist.api.filters.audit.audit import Audit, AuditLog, Sink
from kubist.api.filters.audit.policy import AuditPolicy
from kubist.api.filters.authentication.authentication import (
    Anonymous,
    Authentication,
    ClientCertificates,
    RequestAuthenticator,
    TokenAuthenticator,
    TokenFile,
)
from kubist.api.filters.authentication.client_ca import ClientCA
from kubist.api.filters.authentication.issuer_discovery import KEYS, openid_paths
from kubist.api.filters.authorization.authorization import AlwaysAllow, AlwaysDeny, Authorization, Authorizer
from kubist.api.filters.authorization.query import quoted_list
from kubist.api.filters.authorization.rbac import RBAC
from kubist.api.filters.flowcontrol.flowcontrol import FlowControl
from kubist.api.filters.flowcontrol.inflight import InFlight
from kubist.base.http.tls.contexts import read_certificates
from kubist.base.jsontext.quoting import quoted
from kubist.model import feature_gates

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubist.api.config import Config
    from kubist.api.filters.audit.webhook import WebhookSettings as WebhookBatches
    from kubist.api.filters.authentication.configuration import JWTAuthenticators
    from kubist.api.filters.authentication.tokens import KeySet, TokenSigner
    from kubist.api.filters.authorization.configuration import WebhookSettings
    from kubist.api.object_store.registry import Registry
    from kubist.base.http.client.pool import Pool
    from kubist.base.http.messages import Answer, Request

log = logging.getLogger("kubist.filters")

FRONT_PROXY_SETTINGS = (
    "requestheader_client_ca_file",
    "requestheader_allowed_names",
    "requestheader_username_headers",
    "requestheader_uid_headers",
    "requestheader_group_headers",
    "requestheader_extra_headers_prefix",
)
MODES = ("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")


def audiences(config: Config) -> tuple[str, ...]:
    """Audiences of this server in tokens."""
    return config.api_audiences or config.service_account_issuer[:1]


def authentication(config: Config, registry: Registry, connections: Pool | None = None) -> Authentication:
    """Authentication that the flags configure. In mode AlwaysAllow, anonymous access is off."""
    anonymous = Anonymous(config.anonymous_auth and "AlwaysAllow" not in config.authorization_mode)
    jwt = _jwt(config)
    if jwt is not None and jwt.anonymous is not None:
        anonymous = jwt.anonymous
    return Authentication(
        _tokens(config, registry, jwt, connections),
        anonymous=anonymous,
        audiences=audiences(config),
        requests=_requests(config),
        jwt=jwt,
    )


def _jwt(config: Config) -> JWTAuthenticators | None:
    """JWT authenticators of `--authentication-config`, or of the `--oidc-*` flags."""
    if config.authentication_config:
        # Saves start-up time: only OIDC needs it.
        from kubist.api.filters.authentication.configuration import JWTAuthenticators

        if config.oidc_issuer_url:
            raise ValueError("authentication-config file and oidc-* flags are mutually exclusive")
        return JWTAuthenticators.of_file(
            config.authentication_config, config.service_account_issuer, audiences(config)
        )
    if not config.oidc_issuer_url:
        return None
    # Saves start-up time: only OIDC needs it.
    from kubist.api.filters.authentication.configuration import JWTAuthenticators
    from kubist.api.filters.authentication.jwt_config import issuer_of_flags

    return JWTAuthenticators([issuer_of_flags(config)], audiences(config))


def _requests(config: Config) -> list[RequestAuthenticator]:
    """Authenticators by client certificate. Proxies and users have separate CAs."""
    authenticators: list[RequestAuthenticator] = []
    if any(getattr(config, name) for name in FRONT_PROXY_SETTINGS):
        # Saves start-up time: only front proxies need it.
        from kubist.api.filters.authentication.request_header import RequestHeaders, check_flags

        check_flags(config)
    if config.requestheader_client_ca_file:
        if config.client_ca_file and not config.requestheader_allowed_names:
            _check_overlap(config.client_ca_file, config.requestheader_client_ca_file)
        proxies = RequestHeaders(
            ClientCA(config.requestheader_client_ca_file),
            config.requestheader_allowed_names,
            config.requestheader_username_headers,
            config.requestheader_group_headers,
            config.requestheader_extra_headers_prefix,
            config.requestheader_uid_headers,
        )
        authenticators.append(proxies)
    if config.client_ca_file:
        uid = feature_gates.enabled(config.feature_gates, "AllowParsingUserUIDFromCertAuth")
        authenticators.append(ClientCertificates(ClientCA(config.client_ca_file), uid=uid))
    return authenticators


def _check_overlap(clients: str, proxies: str) -> None:
    """Rejects a CA that is in both files, because every client could then act as a front proxy."""
    if set(read_certificates(clients)) & set(read_certificates(proxies)):
        raise ValueError(
            "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; "
            "--requestheader-allowed-names must be specified to ensure regular client certificates cannot set "
            "authenticating proxy headers for arbitrary users"
        )


def _tokens(
    config: Config, registry: Registry, jwt: JWTAuthenticators | None, connections: Pool | None
) -> list[TokenAuthenticator]:
    authenticators: list[TokenAuthenticator] = []
    own = audiences(config)
    if config.token_auth_file:
        authenticators.append(TokenFile(config.token_auth_file, own))
    keys = service_account_keys(config)
    if keys is not None:
        # Saves start-up time: tokens load `cryptography`.
        from kubist.api.filters.authentication.serviceaccounts import ServiceAccountTokens

        authenticators.append(ServiceAccountTokens(registry, keys, config.service_account_issuer, own))
    if config.enable_bootstrap_token_auth:
        # Saves start-up time: only --enable-bootstrap-token-auth needs it.
        from kubist.api.filters.authentication.bootstrap_tokens import BootstrapTokens

        authenticators.append(BootstrapTokens(registry, own))
    if jwt is not None:
        authenticators.append(jwt)
    if config.authentication_token_webhook_config_file:
        # Saves start-up time: only webhooks need it.
        from kubist.api.filters.remote_review import RemoteReview
        from kubist.api.filters.webhooks import WebhookTokens

        remote = RemoteReview(config.authentication_token_webhook_config_file, connections)
        version = config.authentication_token_webhook_version
        ttl = config.authentication_token_webhook_cache_ttl
        authenticators.append(WebhookTokens(remote, version, own, ttl))
    return authenticators


def service_account_keys(config: Config) -> KeySet | None:
    """Keys that verify service-account tokens; by default the public part of the signing key."""
    files, signing = config.service_account_key_file, config.service_account_signing_key_file
    if not files and not signing:
        return None
    # Saves start-up time: tokens load `cryptography`.
    from kubist.api.filters.authentication.key_files import read_private_key, read_public_keys
    from kubist.api.filters.authentication.tokens import key_set

    if not files:
        return key_set([read_private_key(signing).public_key()])
    return key_set(key for file in files for key in read_public_keys(file))


def token_signer(config: Config) -> TokenSigner | None:
    """Signer of service-account tokens; None without a signing key."""
    if not config.service_account_signing_key_file:
        return None
    # Saves start-up time: tokens load `cryptography`.
    from kubist.api.filters.authentication.tokens import TokenSigner

    return TokenSigner.from_config(config)


def openid(config: Config) -> dict[str, Callable[[Request], Answer]]:
    """OpenID discovery paths of the service-account issuer."""
    keys = service_account_keys(config)
    if keys is None or not config.service_account_issuer:
        return {}
    host = config.external_hostname or config.advertise_address or "127.0.0.1"
    host = host if host == config.external_hostname and ":" in host else f"{host}:{config.secure_port}"
    uri = config.service_account_jwks_uri or f"https://{host}{KEYS}"
    return openid_paths(config.service_account_issuer[0], uri, keys)


def authorization(config: Config, registry: Registry, connections: Pool | None = None) -> Authorization:
    """Authorizers of `--authorization-config`, or of `--authorization-mode`."""
    rbac = RBAC(registry)
    if not config.authorization_config:
        _check_modes(config)
        modes = [_authorizer(mode, config, registry, rbac, connections) for mode in config.authorization_mode]
        return Authorization(modes, rbac)
    # Saves start-up time: only --authorization-config needs it.
    from kubist.api.filters.authorization.configuration import AuthorizationFile, AuthorizerSettings

    file = AuthorizationFile(config.authorization_config)
    made = Authorization([], rbac, file)
    kept: dict[str, Authorizer] = {}

    def replace_authorizers(settings: list[AuthorizerSettings]) -> None:
        """Keeps authorizers other than webhooks, because they hold state. Webhooks are built again."""
        chain = []
        for each in settings:
            if each.webhook is None and each.type not in kept:
                kept[each.type] = _authorizer(each.type, config, registry, rbac, connections)
            chain.append(kept[each.type] if each.webhook is None else _webhook(each.webhook, connections))
        made.replace_configured(chain)

    file.use = replace_authorizers
    replace_authorizers(file.settings)
    return made


def _check_modes(config: Config) -> None:
    """Rejects contradictory authorization flags."""
    modes = config.authorization_mode
    if not modes:
        raise ValueError("at least one authorization-mode must be passed")
    if len(set(modes)) < len(modes):
        raise ValueError(f"authorization-mode {quoted_list(modes)} has mode specified more than once")
    for mode in modes:
        if mode not in MODES:
            raise ValueError(
                f"authorization-mode {quoted(mode)} is not a valid mode; choose one of {', '.join(MODES)}"
            )
    if "ABAC" in modes and not config.authorization_policy_file:
        raise ValueError("authorization-mode ABAC's authorization policy file not passed")
    if "Webhook" in modes and not config.authorization_webhook_config_file:
        raise ValueError("authorization-mode Webhook's authorization config file not passed")
    if config.authorization_policy_file and "ABAC" not in modes:
        raise ValueError("cannot specify --authorization-policy-file without mode ABAC")
    if config.authorization_webhook_config_file and "Webhook" not in modes:
        raise ValueError("cannot specify --authorization-webhook-config-file without mode Webhook")


def _authorizer(
    mode: str, config: Config, registry: Registry, rbac: RBAC, connections: Pool | None
) -> Authorizer:
    match mode:
        case "AlwaysAllow":
            return AlwaysAllow()
        case "AlwaysDeny":
            return AlwaysDeny()
        case "Node":
            # Saves start-up time: only the mode Node needs it.
            from kubist.api.filters.authorization.node import Nodes

            return Nodes(registry)
        case "ABAC":
            # Saves start-up time: only the mode ABAC needs it.
            from kubist.api.filters.authorization.abac import ABAC

            if not config.authorization_policy_file:
                raise ValueError("the authorizer ABAC needs --authorization-policy-file")
            return ABAC(config.authorization_policy_file)
        case "Webhook":
            # Saves start-up time: only the mode Webhook needs it.
            from kubist.api.filters.authorization.configuration import WebhookSettings

            return _webhook(
                WebhookSettings(
                    config.authorization_webhook_config_file,
                    config.authorization_webhook_version,
                    config.authorization_webhook_cache_authorized_ttl,
                    config.authorization_webhook_cache_unauthorized_ttl,
                ),
                connections,
            )
    return rbac


def _webhook(settings: WebhookSettings, connections: Pool | None) -> Authorizer:
    # Saves start-up time: only webhooks need it.
    from kubist.api.filters.remote_review import RemoteReview
    from kubist.api.filters.webhooks import Webhook

    return Webhook(RemoteReview(settings.kubeconfig, connections, settings.timeout), settings)


def limits(config: Config, registry: Registry) -> FlowControl | InFlight | None:
    """Limits for concurrent requests; None without a limit."""
    reading, writing = config.max_requests_inflight, config.max_mutating_requests_inflight
    if config.enable_priority_and_fairness and reading + writing > 0:
        return FlowControl(registry, reading + writing, config.request_timeout / 4)
    return InFlight(reading, writing) if reading or writing else None


def audit(config: Config) -> Audit | None:
    """Audit, if a destination and the policy file are configured."""
    if not config.audit_policy_file:
        for path, backend in ((config.audit_log_path, "log"), (config.audit_webhook_config_file, "webhook")):
            if path:
                log.warning(
                    "No audit policy file provided, no events will be recorded for %s backend: set --audit-policy-file",
                    backend,
                )
        return None
    policy = AuditPolicy.read(config.audit_policy_file)
    sinks: list[Sink] = []
    if config.audit_log_path:
        limits = (config.audit_log_maxsize, config.audit_log_maxbackup, config.audit_log_maxage)
        sinks.append(AuditLog(config.audit_log_path, *limits, compress=config.audit_log_compress))
    if config.audit_webhook_config_file:
        sinks.append(_audit_webhook(config))
    if not sinks:
        return None
    if len(sinks) == 1:
        return Audit(policy, sinks[0])
    # Saves start-up time: only --audit-webhook-config-file needs it.
    from kubist.api.filters.audit.webhook import Sinks

    return Audit(policy, Sinks(sinks))


def _audit_webhook(config: Config) -> Sink:
    # Saves start-up time: only --audit-webhook-config-file needs it.
    from kubist.api.filters.audit.webhook import AuditWebhook, WebhookSettings
    from kubist.api.filters.remote_review import RemoteReview
    from kubist.base.http.client.pool import Pool

    throttled, truncated = config.audit_webhook_batch_throttle_enable, config.audit_webhook_truncate_enabled
    settings = WebhookSettings(
        config.audit_webhook_batch_buffer_size,
        config.audit_webhook_batch_max_size,
        config.audit_webhook_batch_max_wait,
        config.audit_webhook_batch_throttle_qps if throttled else 0,
        config.audit_webhook_batch_throttle_burst,
        config.audit_webhook_initial_backoff,
        config.audit_webhook_truncate_max_event_size if truncated else 0,
        config.audit_webhook_truncate_max_batch_size if truncated else 0,
    )
    _check_batches(settings, throttled=throttled)
    return AuditWebhook(RemoteReview(config.audit_webhook_config_file, Pool()), settings)


def _check_batches(settings: WebhookBatches, *, throttled: bool) -> None:
    """Raises ValueError for limits that are not positive."""
    named: list[tuple[str, float]] = [
        ("buffer size", settings.buffer_size),
        ("max batch size", settings.max_size),
    ]
    if throttled:
        named += [("throttle QPS", settings.throttle_qps), ("throttle burst", settings.throttle_burst)]
    for name, value in named:
        if value <= 0:
            raise ValueError(f"invalid audit batch webhook {name} {value:g}, must be a positive number")
