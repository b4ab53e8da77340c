"""Flags of `kubist serve`, grouped by topic."""

from __future__ import annotations

from kubist.api.config import SERVE_DEFAULTS
from kubist.cli import flags

_DATA, _NETWORK, _API = "Data", "Addresses and access", "API"
_LOOPS, _WORKLOADS, _CLUSTERS = "Control loops", "Simulated workloads", "Many clusters"
_ETCD, _PROCESS = "etcd", "Process and log"
IN_MEMORY = flags.Flag(
    "in-memory", "bool", "false", "Store nothing on disk: every start is a new, empty server.", _DATA
)
KUBECONFIG = flags.Flag(
    "kubeconfig", "string", "", "Path of the kubeconfig to write (default: in the data directory).", _NETWORK
)
KUBECONFIG_MERGE = flags.Flag(
    "kubeconfig-merge", "bool", "false", "Also add a context `kubist` to the user's own kubeconfig.", _NETWORK
)
DETACH = flags.Flag(
    "detach",
    "bool",
    "false",
    "Run in the background: return when the server is ready. `kubist stop` stops it.",
    _PROCESS,
)
SWITCHES = (IN_MEMORY, KUBECONFIG, KUBECONFIG_MERGE, DETACH)
"""Flags without a setting in Config."""
_SETTINGS = {
    _DATA: (
        ("data-dir", "string", "Directory of all data (default: kubist in the user's data directory)."),
        (
            "snapshot",
            "string",
            "Start from this backup or snapshot file, which stays as it is. Needs --in-memory.",
        ),
        (
            "encryption-provider-config",
            "string",
            "Encryption configuration file: resources to encrypt, and providers.",
        ),
        ("encryption-provider-config-automatic-reload", "bool", "Reload that file when it changes."),
        ("event-ttl", "duration", "Time to keep events."),
    ),
    _NETWORK: (
        ("bind-address", "ip", "Address to listen on."),
        ("secure-port", "int", "Port to listen on; 0 takes any free one."),
    ),
    _API: (
        (
            "runtime-config",
            "mapStringString",
            "API versions to serve or not: group/version=true, api/beta=true.",
        ),
        ("feature-gates", "mapStringBool", "Feature gates of kube-apiserver: Name=true,Other=false."),
        ("enable-admission-plugins", "strings", "Admission plugins to enable."),
        ("disable-admission-plugins", "strings", "Admission plugins to disable."),
        ("service-cluster-ip-range", "string", "Cluster IP range of services."),
        ("service-node-port-range", "portRange", "Node ports of services."),
    ),
    _LOOPS: (("controllers", "strings", "Controllers to run: `*` for all, `-name` to exclude one."),),
    _WORKLOADS: (
        ("workloads", "bool", "Simulate nodes, a scheduler, running pods and the workload controllers."),
        ("workload-delay", "duration", "Time that a simulated pod takes to become ready."),
        ("workload-nodes", "int", "Number of simulated nodes."),
        ("workload-node-capacity", "mapStringString", "Size of simulated nodes: cpu=4,memory=16Gi,pods=110."),
        (
            "workload-node-labels",
            "mapStringString",
            "Labels of simulated nodes: topology.kubernetes.io/zone=zone-{i%3}.",
        ),
        ("stages", "stringArray", "File or directory with KWOK Stages; the flag may be repeated."),
    ),
    _CLUSTERS: (
        ("clusters", "bool", "Serve further, isolated clusters below /clusters/NAME of the same port."),
        (
            "clusters-idle-timeout",
            "duration",
            "Time without requests and watches after which a cluster on disk is unloaded; 0: never.",
        ),
    ),
    _ETCD: (
        ("etcd-servers", "strings", "Store objects in this etcd instead. Several servers may share it."),
        ("etcd-cafile", "string", "CA file for the certificates of the etcd servers."),
        ("etcd-certfile", "string", "Client certificate file for etcd."),
        ("etcd-keyfile", "string", "Key file of the client certificate for etcd."),
    ),
    _PROCESS: (
        ("v", "Level", "Log level; from 3 on, every request is logged."),
        ("log-format", "string", "Log format: text or json."),
        ("logging-format", "string", "Same as --log-format, under kube-apiserver's name."),
    ),
}
"""Flags with a setting in Config, which has their defaults."""
_DEFINED = (
    *(
        flags.setting(*words, SERVE_DEFAULTS)._replace(group=group)
        for group, rows in _SETTINGS.items()
        for words in rows
    ),
    *SWITCHES,
    flags.WORKERS._replace(group=_PROCESS),
)
FLAGS = tuple(flag for group in _SETTINGS for flag in _DEFINED if flag.group == group)
"""All flags, in the order of the help."""
