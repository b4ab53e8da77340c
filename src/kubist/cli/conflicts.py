"""Flags that exclude or require each other, and values out of range, as in kube-apiserver."""

from __future__ import annotations

from collections.abc import Container

from kubist.api.config import Config

_AUTHORIZATION = (
    "authorization-mode",
    "authorization-webhook-config-file",
    "authorization-webhook-version",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
)
_NOT_NEGATIVE = (
    "max_requests_inflight",
    "max_mutating_requests_inflight",
    "min_request_timeout",
    "http2_max_streams_per_connection",
    "audit_log_maxage",
    "audit_log_maxbackup",
    "audit_log_maxsize",
)
_HOUR = 3600


def out_of_range(config: Config) -> str:
    """Error message for a value out of range; empty if there is none. A negative limit would limit nothing, or
    everything."""
    for name in _NOT_NEGATIVE:
        value, flag = getattr(config, name), f"--{name.replace('_', '-')}"
        if value < 0:
            is_audit = name.startswith("audit_")
            return (
                f"{flag} {value} can't be a negative number"
                if is_audit
                else f"{flag} can not be negative value"
            )
    if config.service_account_max_token_expiration and not (
        _HOUR <= config.service_account_max_token_expiration <= 1 << 32
    ):
        return "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"
    issuers = config.service_account_issuer
    if "" in issuers:
        return "service-account-issuer should not be an empty string"
    if repeated := next((issuer for issuer in issuers if issuers.count(issuer) > 1), ""):
        return f'service-account-issuer "{repeated}" is already specified'
    return ""


def conflict(given: Container[str], config: Config) -> str:
    """Error message for contradicting flags; empty if there is none. `given` are the flags on the command line."""
    oidc = any(name in given for name in _oidc_flags())
    if config.authorization_config and any(name in given for name in _AUTHORIZATION):
        return (
            "--authorization-config can not be specified when --authorization-mode or "
            "--authorization-webhook-* flags are defined"
        )
    if not config.authentication_config:
        if oidc and not (config.oidc_issuer_url and config.oidc_client_id):
            return (
                "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
            )
        return ""
    if oidc:
        return "authentication-config file and oidc-* flags are mutually exclusive"
    if "anonymous-auth" in given:
        # Saves start-up time: only --authentication-config needs it.
        from kubist.api.filters.authentication.configuration import load

        try:
            found = load(config.authentication_config, config.service_account_issuer)
        except (ValueError, OSError):
            return ""  # the start fails with the same error
        if found.anonymous is not None:
            return (
                "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in "
                "authentication configuration file"
            )
    return ""


def _oidc_flags() -> list[str]:
    names = Config.__dataclass_fields__
    return [name.replace("_", "-") for name in names if name.startswith("oidc_")]
