"""Command-line flags in kube-apiserver's syntax: `--a=b`, `--a b`, `--switch`. A flag sets the Config field
of its name.

The flags of kube-apiserver are data (`flags.json`: group → name, type, default, help). Those without a field in
Config are either harmless and accepted with a log line, or rejected (`unsupported.py`). Unknown flags are an error.
docs/flags.md lists all of them; `tools/make_flags.py` makes it.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import logging
import re
from collections.abc import Container
from typing import Any

from kubist.api.config import KUBERNETES_VERSION, Config
from kubist.api.logs import FORMATS
from kubist.cli.flag_list import OWN as OWN
from kubist.cli.flag_list import WORKERS as WORKERS
from kubist.cli.flag_list import Flag as Flag
from kubist.cli.flag_list import FlagError as FlagError
from kubist.cli.flag_list import of_kube_apiserver as of_kube_apiserver
from kubist.cli.flag_list import parse as parse
from kubist.cli.flag_list import usage as usage
from kubist.cli.unsupported import HARMLESS, rejection
from kubist.model import feature_gates
from kubist.model.meta import durations

log = logging.getLogger("kubist.cli")


def setting(name: str, kind: str, help_: str, defaults: Config) -> Flag:
    """Flag of a Config field, with that field's value as the default."""
    value = getattr(defaults, _field(name))
    if kind == "duration":
        return Flag(name, kind, durations.written(value), help_)
    if isinstance(value, bool):
        return Flag(name, kind, str(value).lower(), help_)
    if isinstance(value, dict):
        return Flag(name, kind, "", help_)
    return Flag(name, kind, ",".join(value) if isinstance(value, tuple) else str(value), help_)


RENAMED = {
    "audit-webhook-batch-initial-backoff": "audit_webhook_initial_backoff",
    "v": "verbosity",
    "log-format": "logging_format",
    "disable-http2-serving": "http2",
    "version": "reported_version",
}
_FIELDS = frozenset(field.name for field in dataclasses.fields(Config))
_IDENTIFIER = "(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_REPORTED_VERSION = re.compile(
    rf"{re.escape(KUBERNETES_VERSION)}(?:-{_IDENTIFIER}(?:\.{_IDENTIFIER})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
NODE_FLAGS = ("workload-nodes", "workload-node-capacity", "workload-node-labels")
RECONCILERS = ("lease", "none", "master-count")
_LISTS = ("strings", "stringArray")


def has_effect(name: str) -> bool:
    """Whether a flag of kube-apiserver is implemented."""
    return _field(name) in _FIELDS or name == "help"


def config(values: dict[str, list[str]], flags: dict[str, Flag], base: Config) -> Config:
    """`base` with the values of the flags. Raises FlagError for invalid or unsupported values."""
    changes: dict[str, Any] = {}
    for name, texts in values.items():
        if wrong := rejection(name, flags[name].default, texts):
            raise FlagError(wrong)
        if name in HARMLESS:
            log.info("--%s has no effect here: %s", name, HARMLESS[name])
        elif has_effect(name):
            field = _field(name)
            value = convert(flags[name], texts, getattr(base, field))
            changes[field] = not value if name == "disable-http2-serving" else value
    rest = {
        name: _format_values(flag, values.get(name)) for name, flag in flags.items() if not has_effect(name)
    }
    made = dataclasses.replace(base, **changes, flagz=rest)
    try:
        feature_gates.check(made.feature_gates)
    except ValueError as error:
        raise FlagError(str(error)) from None
    if wrong := conflict(values, made) or out_of_range(made):
        raise FlagError(wrong)
    if any(name in values for name in (*NODE_FLAGS, "simulated-nodes")):
        _check_nodes(made)
    if made.stages:
        _check_stages(made)
    return made


def _check_nodes(made: Config) -> None:
    # Saves start-up time: only the flags of simulated nodes need it.
    from kubist.cluster.simulation.node_objects import template_of

    try:
        template_of(made)
    except ValueError as error:
        raise FlagError(str(error)) from None


def _check_stages(made: Config) -> None:
    # Saves start-up time: only --stages needs it.
    from kubist.cluster.simulation.stages import sources

    try:
        sources.load(made.stages)
    except ValueError as error:
        raise FlagError(f"--stages: {error}") from None


def _field(name: str) -> str:
    """Config field of a flag."""
    return RENAMED.get(name, name.replace("-", "_"))


_ZEROS = {
    "bool": "false",
    "int": "0",
    "float": "0",
    "float32": "0",
    "duration": "0s",
    "quantity": "0",
    "strings": "[]",
    "Level": "0",
}


def _format_values(flag: Flag, values: list[str] | None) -> str:
    """Value of a flag without a field in Config, as /flagz shows it."""
    if values is None:
        return flag.default or _ZEROS.get(flag.type, "")
    if flag.type in _LISTS:
        return f"[{','.join(values)}]"
    return values[-1]


def asks_for_version(values: dict[str, list[str]]) -> bool:
    """Whether --version asks to print the version. With a version as value, the flag sets the reported version."""
    value = values.get("version", ["false"])[-1]
    return value == "raw" or (not value.startswith("v") and is_on(values, "version"))


def is_on(values: dict[str, list[str]], name: str) -> bool:
    """Value of a switch without a Config field. Raises FlagError unless it is a boolean."""
    value = values.get(name, ["false"])[-1]
    try:
        return _boolean(value)
    except ValueError as error:
        raise FlagError(f'invalid argument "{value}" for "--{name}" flag: {error}') from None


def check_combinations(values: dict[str, list[str]]) -> None:
    """Raises FlagError for flags that contradict each other, or that need another flag."""
    for name in ("etcd-cafile", "etcd-certfile", "etcd-keyfile"):
        if values.get(name, [""])[-1] and not values.get("etcd-servers", [""])[-1]:
            raise FlagError(f"--{name} needs --etcd-servers: without it there is no etcd to talk to")
    for name in ("workload-delay", "stages", *NODE_FLAGS):
        simulates = "simulated-nodes" in values or is_on(values, "workloads") or is_on(values, "clusters")
        if name in values and not simulates:
            raise FlagError(f"--{name} needs --workloads: without it there are no simulated pods and nodes")
    if is_on(values, "clusters"):
        if values.get("etcd-servers", [""])[-1]:
            raise FlagError("--clusters contradicts --etcd-servers: clusters are stored in SQLite")
        if values.get("workers", ["1"])[-1] != "1":
            raise FlagError("--clusters contradicts --workers: all clusters run in one process")
    elif "clusters-idle-timeout" in values:
        raise FlagError(
            "--clusters-idle-timeout needs --clusters: without it there are no clusters to unload"
        )
    if is_on(values, "test-bench") and values.get("workers", ["1"])[-1] != "1":
        raise FlagError("--test-bench contradicts --workers: the test bench controls one process")
    if not is_on(values, "in-memory"):
        return
    if values.get("data-dir", [""])[-1]:
        raise FlagError("--in-memory contradicts --data-dir: leave one of them out")
    if values.get("etcd-servers", [""])[-1]:
        raise FlagError("--in-memory contradicts --etcd-servers: leave one of them out")


def convert(flag: Flag, values: list[str], current: Any) -> Any:
    """Values of a flag converted to the type of its Config field."""
    last = values[-1]
    if flag.name == "feature-gates":
        try:
            return feature_gates.parse(values)
        except ValueError as error:
            raise FlagError(str(error)) from None
    try:
        for value in values:
            _check(flag, value)
        if flag.type in ("stringArray", "namedCertKey"):
            return tuple(values)
        if flag.name == "oidc-required-claim":
            return dict(_pair(value) for value in values)
        if isinstance(current, tuple):
            return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
        if isinstance(current, dict):
            return _pairs(values)
        if isinstance(current, bool):
            return _boolean(last)
        if flag.type == "portRange":
            return "{}-{}".format(*_port_range(last))
        if flag.name == "version":
            return current if not last.startswith("v") else last
        if flag.type == "duration":
            return type(current)(durations.seconds(last))
        if isinstance(current, int):
            return _number(last)
        if isinstance(current, float):
            return _float(last)
    except ValueError as error:
        raise FlagError(f'invalid argument "{last}" for "--{flag.name}" flag: {error}') from None
    return last


def _check(flag: Flag, value: str) -> None:
    """Raises ValueError for an invalid value of the flag."""
    if flag.type == "ip":
        ipaddress.ip_address(value)
    elif flag.type == "portRange":
        _port_range(value)
    elif flag.name == "version" and value.startswith("v") and not _REPORTED_VERSION.fullmatch(value):
        raise ValueError(f"must be {KUBERNETES_VERSION}, with an optional suffix such as -custom or +build.1")
    elif flag.name == "secure-port" and not 0 <= _number(value) <= 65535:
        raise ValueError("must be a port number, from 0 to 65535")
    elif flag.name == "workers" and not 1 <= _number(value) <= 64:
        raise ValueError("must be a number of processes, from 1 to 64")
    elif flag.name == "endpoint-reconciler-type" and value not in RECONCILERS:
        raise ValueError(f"must be {' or '.join(RECONCILERS)}")
    elif flag.name in ("log-format", "logging-format") and value not in FORMATS:
        raise ValueError(f"must be {' or '.join(FORMATS)}")
    elif flag.name == "controllers":
        # Saves start-up time: a server without --controllers loads no loops.
        from kubist.cluster.control.manager import chosen

        chosen(filter(None, map(str.strip, value.split(","))))
    elif flag.type == "namedCertKey":
        # Saves start-up time: only --tls-sni-cert-key needs it.
        from kubist.base.http.tls.sni import CertKey

        CertKey.parse(value)
    elif flag.name == "service-cluster-ip-range":
        for part in value.split(","):
            ipaddress.ip_network(part.strip())


def _port_range(text: str) -> tuple[int, int]:
    """`first-last`, `first+more` or one port."""
    match = re.fullmatch(r"(\d+)(?:([-+])(\d+))?", text)
    if match is None:
        raise ValueError("must be a range of ports such as 30000-32767")
    first = int(match[1])
    last = int(match[3]) + (first if match[2] == "+" else 0) if match[2] else first
    if not 0 < first <= last <= 65535:
        raise ValueError("must be a range of ports from 1 to 65535")
    return first, last


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError("must be a whole number") from None


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("must be a number") from None


def _boolean(text: str) -> bool:
    if text.lower() in ("true", "t", "1"):
        return True
    if text.lower() in ("false", "f", "0"):
        return False
    raise ValueError("must be true or false")


def _pair(text: str) -> tuple[str, str]:
    """`name=value`. The value may contain commas."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError("malformed pair, expect string=string")
    return name.strip(), value.strip()


def _pairs(values: list[str]) -> dict[str, str]:
    pairs = {}
    for part in (part for value in values for part in value.split(",") if part):
        key, _, value = part.partition("=")
        pairs[key.strip()] = value.strip() or "true"
    return pairs


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
    """Error message for a value out of range; empty if there is none. A negative limit would allow everything or
    nothing."""
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


def conflict(flags: Container[str], config: Config) -> str:
    """Error message for contradicting flags; empty if there is none. `flags` are the flags on the command line."""
    oidc = any(name in flags for name in _oidc_flags())
    if config.authorization_config and any(name in flags for name in _AUTHORIZATION):
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
    if "anonymous-auth" in flags:
        # Saves start-up time: only --authentication-config needs it.
        from kubist.api.filters.authentication.configuration import load

        try:
            configuration = load(config.authentication_config, config.service_account_issuer)
        except (ValueError, OSError):
            return ""  # the start fails with the same error
        if configuration.anonymous is not None:
            return (
                "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in "
                "authentication configuration file"
            )
    return ""


def _oidc_flags() -> list[str]:
    names = Config.__dataclass_fields__
    return [name.replace("_", "-") for name in names if name.startswith("oidc_")]
