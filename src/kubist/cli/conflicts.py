"""Flags that exclude or require each other, as in kube-apiserver."""

from __future__ import annotations

from collections.abc import Container

from kubist.config import Config

_AUTHORIZATION = (
    "authorization-mode",
    "authorization-webhook-config-file",
    "authorization-webhook-version",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
)


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
        from kubist.filters.authenticationconfig import load

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
