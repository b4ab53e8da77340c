"""Type of the keyword arguments `**settings` of `kubist.Server` and `kubist.testing.Cluster`.

Made by tools/make_settings.py from `kubist.Config`, because a type checker can read keyword arguments only from a
TypedDict. `kubist.Config` documents the fields.
"""

from __future__ import annotations

from os import PathLike
from typing import TypedDict

StrPath = str | PathLike[str]
"""File or directory."""


class Settings(TypedDict, total=False):
    """Fields of `kubist.Config`, all optional."""

    bind_address: str
    secure_port: int
    advertise_address: str
    cert_dir: StrPath
    tls_cert_file: StrPath
    tls_private_key_file: StrPath
    tls_min_version: str
    tls_cipher_suites: tuple[str, ...]
    tls_sni_cert_key: tuple[str, ...]
    client_ca_file: StrPath
    token_auth_file: StrPath
    anonymous_auth: bool
    enable_bootstrap_token_auth: bool
    authentication_config: StrPath
    oidc_issuer_url: str
    oidc_client_id: str
    oidc_ca_file: StrPath
    oidc_username_claim: str
    oidc_username_prefix: str
    oidc_groups_claim: str
    oidc_groups_prefix: str
    oidc_signing_algs: tuple[str, ...]
    oidc_required_claim: dict[str, str]
    requestheader_client_ca_file: StrPath
    requestheader_allowed_names: tuple[str, ...]
    requestheader_username_headers: tuple[str, ...]
    requestheader_uid_headers: tuple[str, ...]
    requestheader_group_headers: tuple[str, ...]
    requestheader_extra_headers_prefix: tuple[str, ...]
    aggregator_reject_forwarding_redirect: bool
    proxy_client_cert_file: StrPath
    proxy_client_key_file: StrPath
    authentication_token_webhook_config_file: StrPath
    authentication_token_webhook_version: str
    authentication_token_webhook_cache_ttl: int
    authorization_mode: tuple[str, ...]
    authorization_config: StrPath
    authorization_policy_file: StrPath
    authorization_webhook_config_file: StrPath
    authorization_webhook_version: str
    authorization_webhook_cache_authorized_ttl: int
    authorization_webhook_cache_unauthorized_ttl: int
    http2: bool
    http2_max_streams_per_connection: int
    cors_allowed_origins: tuple[str, ...]
    strict_transport_security_directives: tuple[str, ...]
    external_hostname: str
    reported_version: str
    workers: int
    data_dir: StrPath
    snapshot: StrPath
    etcd_servers: tuple[str, ...]
    etcd_cafile: StrPath
    etcd_certfile: StrPath
    etcd_keyfile: StrPath
    etcd_prefix: str
    etcd_compaction_interval: float
    endpoint_reconciler_type: str
    event_ttl: int
    encryption_provider_config: StrPath
    encryption_provider_config_automatic_reload: bool
    service_cluster_ip_range: str
    service_node_port_range: str
    service_account_issuer: tuple[str, ...]
    service_account_key_file: tuple[StrPath, ...]
    service_account_signing_key_file: StrPath
    service_account_jwks_uri: str
    service_account_max_token_expiration: int
    service_account_extend_token_expiration: bool
    api_audiences: tuple[str, ...]
    allow_privileged: bool
    admission_control: tuple[str, ...]
    enable_admission_plugins: tuple[str, ...]
    disable_admission_plugins: tuple[str, ...]
    admission_control_config_file: StrPath
    default_not_ready_toleration_seconds: int
    default_unreachable_toleration_seconds: int
    runtime_config: dict[str, str]
    feature_gates: dict[str, bool]
    enable_priority_and_fairness: bool
    max_requests_inflight: int
    max_mutating_requests_inflight: int
    min_request_timeout: int
    request_timeout: int
    shutdown_delay_duration: float
    audit_log_path: StrPath
    audit_log_maxsize: int
    audit_log_maxbackup: int
    audit_log_maxage: int
    audit_log_compress: bool
    audit_policy_file: StrPath
    audit_webhook_config_file: StrPath
    audit_webhook_batch_buffer_size: int
    audit_webhook_batch_max_size: int
    audit_webhook_batch_max_wait: float
    audit_webhook_batch_throttle_enable: bool
    audit_webhook_batch_throttle_qps: float
    audit_webhook_batch_throttle_burst: int
    audit_webhook_initial_backoff: float
    audit_webhook_truncate_enabled: bool
    audit_webhook_truncate_max_batch_size: int
    audit_webhook_truncate_max_event_size: int
    profiling: bool
    disabled_metrics: tuple[str, ...]
    verbosity: int
    logging_format: str
    flagz: dict[str, str]
    controllers: tuple[str, ...]
    root_ca_file: StrPath
    cluster_signing_cert_file: StrPath
    cluster_signing_key_file: StrPath
    workloads: bool
    workload_delay: float
    stages: tuple[StrPath, ...]
    workload_nodes: int
    workload_node_capacity: dict[str, str]
    workload_node_labels: dict[str, str]
    simulated_nodes: int
    test_bench: bool
    clusters: bool
    clusters_idle_timeout: float
    url_prefix: str
