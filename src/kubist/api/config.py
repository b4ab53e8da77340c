"""Configuration of a server as one immutable object. The command-line flags fill it in."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any

KUBERNETES_VERSION = "v1.36.4"


@dataclass(slots=True, frozen=True)
class Config:
    """Settings of a server. Defaults are kube-apiserver's where it has the same setting.

    `kubist.Server` takes the same settings as keyword arguments, or a whole Config:

        config = kubist.Config(data_dir="./data", secure_port=7443, controllers=("*",))
        with kubist.Server(config) as server: ...

    Common settings, with the defaults of `kubist.Server`:

        data_dir=""              directory of all data; empty: in memory only
        secure_port=0            port; 0: any free one
        bind_address="127.0.0.1" address to listen on
        controllers=("*",)       control loops to run; (): none; "-NAME" leaves one out
        workloads=False          simulates nodes, the scheduler, workload controllers and running pods
        feature_gates={}         feature gates that differ from their defaults, by name
        enable_admission_plugins=(), disable_admission_plugins=()
        authorization_mode=("RBAC",)
        etcd_servers=()          URLs of etcd servers, which replace `data_dir`; needs `kubist[etcd]`

    A setting named like a flag means the same as the flag: `kubist apiserver --help` describes the flags.
    """

    bind_address: str = "0.0.0.0"
    secure_port: int = 6443
    advertise_address: str = ""
    cert_dir: str = ""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    tls_min_version: str = ""
    tls_cipher_suites: tuple[str, ...] = ()
    """TLS 1.2 cipher suites by Go's names. Empty: OpenSSL's default."""
    tls_sni_cert_key: tuple[str, ...] = ()
    """More serving certificates: `cert,key` or `cert,key:name,name`. The server name of a handshake selects one."""
    client_ca_file: str = ""
    token_auth_file: str = ""
    anonymous_auth: bool = True
    enable_bootstrap_token_auth: bool = False
    authentication_config: str = ""
    """File with JWT authenticators and rules for anonymous requests. It replaces `oidc_*`."""
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
    """Key of the client certificate that the server presents to the backends of APIServices."""
    authentication_token_webhook_config_file: str = ""
    authentication_token_webhook_version: str = "v1beta1"
    authentication_token_webhook_cache_ttl: int = 120

    authorization_mode: tuple[str, ...] = ("AlwaysAllow",)
    authorization_config: str = ""
    """File with the authorizers. It replaces `authorization_mode` and `authorization_webhook_*`."""
    authorization_policy_file: str = ""
    authorization_webhook_config_file: str = ""
    authorization_webhook_version: str = "v1beta1"
    authorization_webhook_cache_authorized_ttl: int = 300
    authorization_webhook_cache_unauthorized_ttl: int = 30
    http2: bool = True
    http2_max_streams_per_connection: int = 0
    """Concurrent requests on an HTTP/2 connection. 0: the default of `http.limits`."""
    cors_allowed_origins: tuple[str, ...] = ()
    strict_transport_security_directives: tuple[str, ...] = ()
    external_hostname: str = ""
    reported_version: str = KUBERNETES_VERSION
    """gitVersion in /version."""
    workers: int = 1
    """Number of worker processes of `kubist serve` and `kubist apiserver`. A server inside another program
    always has one."""

    data_dir: str = ""
    """Directory of the SQLite store. Empty, without etcd: in memory only."""
    snapshot: str = ""
    """Snapshot or `kubist backup` file that an in-memory server starts from. The server does not change the file."""
    etcd_servers: tuple[str, ...] = ()
    etcd_cafile: str = ""
    etcd_certfile: str = ""
    etcd_keyfile: str = ""
    etcd_prefix: str = "/registry"
    etcd_compaction_interval: float = 300.0
    """Seconds of history that etcd keeps after compaction. 0: this server does not compact etcd."""
    endpoint_reconciler_type: str = "lease"
    """Endpoints of the Service kubernetes. `lease`: all servers on one etcd; `none`: not maintained by this
    server; `master-count`: the server writes its own address at start."""
    event_ttl: int = 3600
    encryption_provider_config: str = ""
    encryption_provider_config_automatic_reload: bool = False

    service_cluster_ip_range: str = "10.0.0.0/24"
    """One CIDR, or two of different IP families separated by a comma."""
    service_node_port_range: str = "30000-32767"
    service_account_issuer: tuple[str, ...] = ()
    service_account_key_file: tuple[str, ...] = ()
    service_account_signing_key_file: str = ""
    service_account_jwks_uri: str = ""
    service_account_max_token_expiration: int = 0
    service_account_extend_token_expiration: bool = True
    """Whether one-hour tokens projected into pods are valid for a year, with a warnafter claim of one hour."""
    api_audiences: tuple[str, ...] = ()
    allow_privileged: bool = False

    admission_control: tuple[str, ...] = ()
    """The only admission plugins to run. Empty: the default plugins."""
    enable_admission_plugins: tuple[str, ...] = ()
    disable_admission_plugins: tuple[str, ...] = ()
    admission_control_config_file: str = ""
    default_not_ready_toleration_seconds: int = 300
    default_unreachable_toleration_seconds: int = 300
    runtime_config: dict[str, str] = field(default_factory=dict)
    feature_gates: dict[str, bool] = field(default_factory=dict)
    """Feature gates that differ from their defaults."""

    enable_priority_and_fairness: bool = True
    max_requests_inflight: int = 400
    max_mutating_requests_inflight: int = 200
    min_request_timeout: int = 1800
    request_timeout: int = 60
    shutdown_delay_duration: float = 0.0
    """Seconds between a termination signal and the shutdown. Meanwhile the server answers requests, and /readyz
    fails."""
    audit_log_path: str = ""
    audit_log_maxsize: int = 100
    audit_log_maxbackup: int = 100
    audit_log_maxage: int = 366
    audit_log_compress: bool = False
    audit_policy_file: str = ""
    audit_webhook_config_file: str = ""
    """Kubeconfig of the webhook that receives audit events in batches."""
    audit_webhook_batch_buffer_size: int = 10_000
    audit_webhook_batch_max_size: int = 400
    audit_webhook_batch_max_wait: float = 30.0
    audit_webhook_batch_throttle_enable: bool = True
    audit_webhook_batch_throttle_qps: float = 10.0
    audit_webhook_batch_throttle_burst: int = 15
    audit_webhook_initial_backoff: float = 10.0
    audit_webhook_truncate_enabled: bool = False
    audit_webhook_truncate_max_batch_size: int = 10_485_760
    audit_webhook_truncate_max_event_size: int = 102_400
    profiling: bool = True
    """Whether /debug/pprof and /debug/flags are served."""
    disabled_metrics: tuple[str, ...] = ()
    verbosity: int = 0
    logging_format: str = "text"
    flagz: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Command-line flags without a setting here, as /flagz shows them."""

    controllers: tuple[str, ...] = ()
    """Control loops that `serve` runs. Empty for a bare API server."""
    root_ca_file: str = ""
    """CA file that is published in every namespace as ConfigMap `kube-root-ca.crt`."""
    cluster_signing_cert_file: str = ""
    cluster_signing_key_file: str = ""
    """CA that signs approved CertificateSigningRequests."""
    workloads: bool = False
    """Simulates nodes, the scheduler, the workload controllers, and running pods."""
    workload_delay: float = 0.0
    """Seconds until a simulated pod is ready."""
    stages: tuple[str, ...] = ()
    """Files and directories with KWOK Stages that drive simulated objects."""
    workload_nodes: int = 2
    """Number of simulated nodes with `workloads`."""
    workload_node_capacity: dict[str, str] = field(default_factory=dict)
    """Size of simulated nodes, such as `{"cpu": "4", "pods": "110"}`. Other resources keep their default amounts."""
    workload_node_labels: dict[str, str] = field(default_factory=dict)
    """Additional labels of simulated nodes. `{i}` is the number of the node, `{i%3}` that number modulo 3."""
    simulated_nodes: int = 0
    """Number of simulated nodes of a bare API server, whose scheduler and controllers run elsewhere."""
    test_bench: bool = False
    """Serves /kubist/v1/: control over this server for tests."""
    clusters: bool = False
    """Serves additional, isolated clusters below /clusters/NAME. /kubist/v1/clusters creates them."""
    clusters_idle_timeout: float = 600.0
    """Seconds without a request or watch after which a cluster on disk is unloaded. 0: never."""
    url_prefix: str = ""
    """Path of this server on the port of another server: `/clusters/NAME`. Links in responses start with it."""

    def __new__(cls, *_: Any, **settings: Any) -> Config:
        """Rejects unknown settings with a hint."""
        for name in settings:
            if name not in cls.__dataclass_fields__:
                # Saves start-up time: needed only for an unknown setting.
                from kubist.base.hints import did_you_mean

                hint = did_you_mean(name, cls.__dataclass_fields__)
                raise TypeError(f'kubist.Config has no setting "{name}"{hint}')
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for name in PATHS:
            value = getattr(self, name)
            if isinstance(value, PathLike):
                object.__setattr__(self, name, fspath(value))
            elif isinstance(value, tuple | list):
                object.__setattr__(
                    self, name, tuple(fspath(path) if isinstance(path, PathLike) else path for path in value)
                )


PATHS = (
    "cert_dir",
    "tls_cert_file",
    "tls_private_key_file",
    "client_ca_file",
    "token_auth_file",
    "authentication_config",
    "oidc_ca_file",
    "requestheader_client_ca_file",
    "proxy_client_cert_file",
    "proxy_client_key_file",
    "authentication_token_webhook_config_file",
    "authorization_config",
    "authorization_policy_file",
    "authorization_webhook_config_file",
    "data_dir",
    "snapshot",
    "etcd_cafile",
    "etcd_certfile",
    "etcd_keyfile",
    "encryption_provider_config",
    "service_account_key_file",
    "service_account_signing_key_file",
    "admission_control_config_file",
    "audit_log_path",
    "audit_policy_file",
    "audit_webhook_config_file",
    "root_ca_file",
    "cluster_signing_cert_file",
    "cluster_signing_key_file",
    "stages",
)
"""Settings that are files or directories. They may be given as a `pathlib.Path`."""


SERVE_DEFAULTS = Config(
    bind_address="127.0.0.1",
    authorization_mode=("RBAC",),
    service_cluster_ip_range="10.96.0.0/16",
    service_account_issuer=("https://kubernetes.default.svc.cluster.local",),
    allow_privileged=True,
    controllers=("*",),
    test_bench=True,
)
"""Defaults of `kubist serve`, and of servers inside other programs and tests."""
