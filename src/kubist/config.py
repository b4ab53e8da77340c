"""Everything that can be configured, in one immutable place. Flags of the command line fill it in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

KUBERNETES_VERSION = "v1.36.4"


@dataclass(slots=True, frozen=True)
class Config:
    """A server's configuration. Defaults are kube-apiserver's where it has the same setting."""

    bind_address: str = "0.0.0.0"
    secure_port: int = 6443
    advertise_address: str = ""
    cert_dir: str = ""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    tls_min_version: str = ""
    tls_cipher_suites: tuple[str, ...] = ()
    """Suites of TLS 1.2 by Go's names; none for OpenSSL's choice."""
    client_ca_file: str = ""
    token_auth_file: str = ""
    anonymous_auth: bool = True
    enable_bootstrap_token_auth: bool = False
    authentication_config: str = ""
    """File with JWT authenticators and rules for anonymous requests, in the place of `oidc_*`."""
    oidc_issuer_url: str = ""
    oidc_client_id: str = ""
    oidc_ca_file: str = ""
    oidc_username_claim: str = "sub"
    oidc_username_prefix: str = ""
    oidc_groups_claim: str = ""
    oidc_groups_prefix: str = ""
    oidc_signing_algs: tuple[str, ...] = ("RS256",)
    oidc_required_claim: dict[str, str] = field(default_factory=dict)
    requestheader_client_ca_file: str = ""
    requestheader_allowed_names: tuple[str, ...] = ()
    requestheader_username_headers: tuple[str, ...] = ()
    requestheader_uid_headers: tuple[str, ...] = ()
    requestheader_group_headers: tuple[str, ...] = ()
    requestheader_extra_headers_prefix: tuple[str, ...] = ()
    aggregator_reject_forwarding_redirect: bool = True
    proxy_client_cert_file: str = ""
    proxy_client_key_file: str = ""
    """What the server shows to the servers behind APIServices."""
    authentication_token_webhook_config_file: str = ""
    authentication_token_webhook_version: str = "v1beta1"
    authentication_token_webhook_cache_ttl: int = 120

    authorization_mode: tuple[str, ...] = ("AlwaysAllow",)
    authorization_config: str = ""
    """File with the authorizers, in the place of `authorization_mode` and `authorization_webhook_*`."""
    authorization_policy_file: str = ""
    authorization_webhook_config_file: str = ""
    authorization_webhook_version: str = "v1beta1"
    authorization_webhook_cache_authorized_ttl: int = 300
    authorization_webhook_cache_unauthorized_ttl: int = 30
    http2: bool = True
    http2_max_streams_per_connection: int = 0
    """Requests at work at once on a connection; 0 for the default of `http.limits`."""
    cors_allowed_origins: tuple[str, ...] = ()
    strict_transport_security_directives: tuple[str, ...] = ()
    external_hostname: str = ""
    reported_version: str = KUBERNETES_VERSION
    """The gitVersion in /version."""
    workers: int = 1
    """Processes of `kubist serve` and `kubist apiserver`; a server within another program is always one."""

    data_dir: str = ""
    """Where the embedded store lives; empty (and no etcd): in memory only."""
    etcd_servers: tuple[str, ...] = ()
    etcd_cafile: str = ""
    etcd_certfile: str = ""
    etcd_keyfile: str = ""
    etcd_prefix: str = "/registry"
    etcd_compaction_interval: float = 300.0
    """Seconds of history that etcd keeps; 0 leaves compaction to others."""
    endpoint_reconciler_type: str = "lease"
    """`lease`: the endpoints of the Service kubernetes are all servers that run on one etcd; `none`: somebody else
    maintains them; `master-count`: a server writes its own address when it starts."""
    event_ttl: int = 3600
    encryption_provider_config: str = ""
    encryption_provider_config_automatic_reload: bool = False

    service_cluster_ip_range: str = "10.0.0.0/24"
    """One CIDR, or two of different families with a comma."""
    service_node_port_range: str = "30000-32767"
    service_account_issuer: tuple[str, ...] = ()
    service_account_key_file: tuple[str, ...] = ()
    service_account_signing_key_file: str = ""
    service_account_jwks_uri: str = ""
    service_account_max_token_expiration: int = 0
    service_account_extend_token_expiration: bool = True
    """Whether tokens that are projected into pods for an hour are good for a year, with a mark from the hour on."""
    api_audiences: tuple[str, ...] = ()
    allow_privileged: bool = False

    enable_admission_plugins: tuple[str, ...] = ()
    disable_admission_plugins: tuple[str, ...] = ()
    admission_control_config_file: str = ""
    runtime_config: dict[str, str] = field(default_factory=dict)

    enable_priority_and_fairness: bool = True
    max_requests_inflight: int = 400
    max_mutating_requests_inflight: int = 200
    min_request_timeout: int = 1800
    request_timeout: int = 60
    audit_log_path: str = ""
    audit_log_maxsize: int = 100
    audit_log_maxbackup: int = 100
    audit_log_maxage: int = 366
    audit_policy_file: str = ""
    verbosity: int = 0
    logging_format: str = "text"

    controllers: tuple[str, ...] = ()
    """The loops of `serve` to run; none for a bare API server."""
    root_ca_file: str = ""
    """What is published to every namespace as `kube-root-ca.crt`."""
    cluster_signing_cert_file: str = ""
    cluster_signing_key_file: str = ""
    """The authority that signs approved certificate requests."""
    workloads: bool = False
    """Simulate a node, the loops of workloads, and pods that run."""
    workload_delay: float = 0.0
    """Seconds until a simulated pod is ready."""

    def __new__(cls, *_: Any, **settings: Any) -> Config:
        """Refuse unknown settings with a hint."""
        for name in settings:
            if name not in cls.__dataclass_fields__:
                # Saves start-up time: needed for a mistake only.
                from kubist.hints import did_you_mean

                hint = did_you_mean(name, cls.__dataclass_fields__)
                raise TypeError(f'kubist.Config has no setting "{name}"{hint}')
        return object.__new__(cls)
