"""Flags of kube-apiserver without a counterpart. Harmless ones are accepted with a log line; others stop the
start.

A flag is harmless if Kubist has nothing that the flag could restrict, protect or expose. docs/flags.md
lists all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kubist.cli import versions

_METRICS = "metrics have fixed names and labels"
_AUDIT_BATCH = "audit events are written in batches of up to 64 KiB by a thread of their own"
_AUDIT_WHOLE = "audit events are never truncated"
_ETCD = "it tunes kube-apiserver's own use of etcd"
_KUBELET = "this server never connects to kubelets"
_LEADERSHIP = "coordinated leader election is not part of this server"
_LOGS = "log lines are written at once, to standard error"
_PEER = "requests are never passed on to other API servers"
_STOP = "a stop ends watches and answers all accepted requests at once"

HARMLESS = {
    "allow-metric-labels": _METRICS,
    "allow-metric-labels-manifest": _METRICS,
    "apiserver-count": "--endpoint-reconciler-type=lease counts the servers by itself",
    "audit-log-batch-buffer-size": _AUDIT_BATCH,
    "audit-log-batch-max-size": _AUDIT_BATCH,
    "audit-log-batch-max-wait": _AUDIT_BATCH,
    "audit-log-batch-throttle-burst": _AUDIT_BATCH,
    "audit-log-batch-throttle-enable": _AUDIT_BATCH,
    "audit-log-batch-throttle-qps": _AUDIT_BATCH,
    "audit-log-truncate-enabled": _AUDIT_WHOLE,
    "audit-log-truncate-max-batch-size": _AUDIT_WHOLE,
    "audit-log-truncate-max-event-size": _AUDIT_WHOLE,
    "contention-profiling": "there is no profile of contention",
    "coordinated-leadership-lease-duration": _LEADERSHIP,
    "coordinated-leadership-renew-deadline": _LEADERSHIP,
    "coordinated-leadership-retry-period": _LEADERSHIP,
    "debug-socket-path": "profiles are served at /debug/pprof/ only, with authentication and authorization",
    "default-watch-cache-size": "the cache holds the changes of the last minutes for every collection",
    "delete-collection-workers": "collections are deleted one object after the other",
    "enable-aggregator-routing": "aggregated API servers are always reached at their endpoints",
    "etcd-count-metric-poll-period": _ETCD,
    "etcd-db-metric-poll-interval": _ETCD,
    "etcd-healthcheck-timeout": _ETCD,
    "etcd-readycheck-timeout": _ETCD,
    "goaway-chance": "connections are never closed in order to spread the load",
    "kubelet-certificate-authority": _KUBELET,
    "kubelet-client-certificate": _KUBELET,
    "kubelet-client-key": _KUBELET,
    "kubelet-port": _KUBELET,
    "kubelet-preferred-address-types": _KUBELET,
    "kubelet-read-only-port": _KUBELET,
    "kubelet-timeout": _KUBELET,
    "lease-reuse-duration-seconds": _ETCD,
    "livez-grace-period": "/livez answers as soon as the server listens",
    "log-flush-frequency": _LOGS,
    "log-json-info-buffer-size": _LOGS,
    "log-json-split-stream": _LOGS,
    "log-text-info-buffer-size": _LOGS,
    "log-text-split-stream": _LOGS,
    "peer-advertise-ip": _PEER,
    "peer-advertise-port": _PEER,
    "peer-ca-file": _PEER,
    "permit-address-sharing": "SO_REUSEADDR is always set",
    "service-account-lookup": "the objects that a service account token is bound to are always looked up",
    "show-hidden-metrics-for-version": _METRICS,
    "shutdown-send-retry-after": _STOP,
    "shutdown-watch-termination-grace-period": _STOP,
    "storage-initialization-timeout": "the server waits for its store without a limit",
    "storage-media-type": "objects are stored as JSON; those stored as protobuf are read as well",
    "vmodule": "the level of the log is the same for all modules: use --v",
    "watch-cache": "every collection is cached, and watches are served from the cache",
    "watch-cache-sizes": "the cache holds the changes of the last minutes for every collection",
}
"""Flag → reason why it may be ignored."""


class Rejection(NamedTuple):
    """Advice for an unsupported flag. The flag's default and the `accepted` values are allowed nevertheless."""

    advice: str
    accepted: tuple[str, ...] = ()


_SAME_VERSION = "it cannot be set to true if the emulation version is the same as the binary version"

REJECTED = {
    "audit-log-format": Rejection("audit logs have the format json; leave the flag out"),
    "audit-log-mode": Rejection(
        "audit events are written in the background and requests never wait for them; "
        "use batch, or leave the flag out",
        ("batch",),
    ),
    "audit-log-version": Rejection("audit logs have the version audit.k8s.io/v1; leave the flag out"),
    "audit-webhook-mode": Rejection(
        "audit events are sent in the background and requests never wait for them; use batch, or leave the flag out"
    ),
    "audit-webhook-version": Rejection("audit events have the version audit.k8s.io/v1; leave the flag out"),
    "egress-selector-config-file": Rejection(
        "connections to webhooks and aggregated API servers are direct; leave the flag out or use the protocol "
        "Direct for all selections, and let the network restrict where this server may connect to"
    ),
    "emulated-version": Rejection(
        "the server always behaves as Kubernetes v1.36; use 1.36, or leave the flag out",
        ("1.36", "kube=1.36"),
    ),
    "emulation-forward-compatible": Rejection(_SAME_VERSION),
    "enable-garbage-collector": Rejection("deletion always follows propagationPolicy; leave the flag out"),
    "enable-logs-handler": Rejection("there is no /logs endpoint; read the log from standard error"),
    "etcd-servers-overrides": Rejection("all resources are kept in the etcd of --etcd-servers"),
    "kubernetes-service-node-port": Rejection(
        "the Service kubernetes always has the type ClusterIP; create another Service of type NodePort"
    ),
    "max-connection-bytes-per-sec": Rejection(
        "connections have no rate limit; leave the flag out, and limit the rate in a proxy in front"
    ),
    "min-compatibility-version": Rejection(
        "the server is always compatible with Kubernetes v1.35; use 1.35, or leave the flag out",
        ("1.35", "kube=1.35"),
    ),
    "permit-port-sharing": Rejection("a port is only shared among the processes of --workers"),
    "runtime-config-emulation-forward-compatible": Rejection(_SAME_VERSION),
    "service-account-signing-endpoint": Rejection(
        "service account tokens are signed with a key in a file; use --service-account-signing-key-file"
    ),
    "storage-backend": Rejection("the backends are etcd3 (--etcd-servers) and SQLite", ("etcd3",)),
    "tls-curve-preferences": Rejection("the key exchange is OpenSSL's choice; leave the flag out"),
    "tracing-config-file": Rejection("this server exports no traces; leave the flag out"),
}
"""Flag → what to do instead. These flags restrict access, protect data, or change visible behaviour."""


def rejection(name: str, default: str, values: list[str]) -> str:
    """Error message for rejected values of a flag; empty if they are allowed."""
    rule = REJECTED.get(name)
    if rule is None:
        return ""
    neutral = {default, *rule.accepted, *(("", "false", "0") if not default else ())}
    if default == "[]":
        neutral.add("")
    if all(value in neutral for value in values):
        return ""
    if name in versions.FLAGS and (wrong := versions.mistake(name, values)):
        return wrong
    if name == "egress-selector-config-file" and not (wrong := _egress_mistake(values[-1])):
        return ""
    if name == "egress-selector-config-file" and wrong != PROXIED:
        return f"--{name}: {wrong}"
    return f"--{name} is not supported: {rule.advice}"


PROXIED = "a selection uses a proxy"
_VERSIONS = ("apiserver.k8s.io/v1beta1", "apiserver.k8s.io/v1alpha1")


def _egress_mistake(path: str) -> str:
    """Error message for an egress selector file that is unreadable, malformed or not only direct (`PROXIED`); empty
    otherwise. Kubist makes no connections through proxies."""
    # Saves start-up time: only this flag needs it.
    import yaml

    try:
        with open(path, "rb") as file:
            configuration: Any = yaml.safe_load(file)
    except OSError as error:
        return f"{path}: {error.strerror}"
    except (yaml.YAMLError, ValueError):
        return f"{path} is not YAML"
    if (
        not isinstance(configuration, dict)
        or configuration.get("kind") != "EgressSelectorConfiguration"
        or configuration.get("apiVersion") not in _VERSIONS
    ):
        return f"{path} is not an EgressSelectorConfiguration of {_VERSIONS[0]}"
    selections = configuration.get("egressSelections") or []
    if not isinstance(selections, list):
        return f"{path}: egressSelections must be a list"
    for selection in selections:
        connection = selection.get("connection") if isinstance(selection, dict) else None
        if not isinstance(connection, dict) or connection.get("proxyProtocol") != "Direct":
            return PROXIED
    return ""
