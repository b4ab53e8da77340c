"""/flagz and /statusz: the flags and the state of a server, as text, JSON or YAML."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable
from typing import Any

import orjson

from kubist.api.config import KUBERNETES_VERSION, Config
from kubist.api.representation.representation import indented
from kubist.api.request import parse_query
from kubist.base.http.messages import Request, Response
from kubist.model import feature_gates
from kubist.model.codec import negotiate, yaml
from kubist.model.meta import durations, times

NAME = "apiserver"
GROUP = "config.k8s.io"
VERSIONS = ("v1beta1", "v1alpha1")
OFFERED = (negotiate.JSON, negotiate.YAML, "text/plain")
WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)
PATHS = ("/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version")
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
_RENAMED = {"verbosity": "v"}
_HIDDEN = ("flagz", "reported_version")
_DURATIONS = frozenset(
    (
        "audit_webhook_batch_max_wait",
        "audit_webhook_initial_backoff",
        "authentication_token_webhook_cache_ttl",
        "authorization_webhook_cache_authorized_ttl",
        "authorization_webhook_cache_unauthorized_ttl",
        "etcd_compaction_interval",
        "event_ttl",
        "request_timeout",
        "service_account_max_token_expiration",
        "shutdown_delay_duration",
        "workload_delay",
    )
)
"""Fields that hold seconds and whose flags take durations."""


def pages(config: Config) -> dict[str, Callable[[Request], Response]]:
    """Handlers of the pages whose feature gates are on."""
    handlers: dict[str, Callable[[Request], Response]] = {}
    if feature_gates.enabled(config.feature_gates, "ComponentFlagz"):
        handlers["/flagz"] = FlagzPage(config).answer
    if feature_gates.enabled(config.feature_gates, "ComponentStatusz"):
        listed = [path for path in PATHS if path != "/flagz" or path in handlers]
        handlers["/statusz"] = StatuszPage(listed).answer
    return handlers


class FlagzPage:
    """/flagz. It shows the configuration, which contains file names but no secrets."""

    kind = "Flagz"

    def __init__(self, config: Config) -> None:
        self._config = config

    def answer(self, request: Request) -> Response:
        flags = shown_flags(self._config)
        lines = ["", "apiserver flagz", WARNING, *(f"{name}={value}" for name, value in flags.items())]
        return _respond(request, self.kind, {"flags": flags}, "\n".join(lines) + "\n")


class StatuszPage:
    """/statusz: start time, versions and paths."""

    kind = "Statusz"

    def __init__(self, paths: list[str]) -> None:
        self._started = time.time()
        self._paths = paths

    def answer(self, request: Request) -> Response:
        up = int(time.time() - self._started)
        started = time.gmtime(self._started)
        binary = KUBERNETES_VERSION.removeprefix("v")
        emulated = binary.rpartition(".")[0]
        value = {
            "startTime": times.format_time(int(self._started)),
            "uptimeSeconds": up,
            "goVersion": PYTHON,
            "binaryVersion": binary,
            "emulationVersion": emulated,
            "paths": self._paths,
        }
        text = f"""
apiserver statusz
{WARNING}

Started= {time.strftime("%a %b %e %H:%M:%S UTC %Y", started)}
Up= {up // 3600} hr {up // 60 % 60:02} min {up % 60:02} sec
Go version= {PYTHON}
Binary version= {binary}
Emulation version= {emulated}
Paths= {" ".join(self._paths)}
"""
        return _respond(request, self.kind, value, text)


def _respond(request: Request, kind: str, value: dict[str, Any], text: str) -> Response:
    """Response in the form that the client accepts: text, or JSON or YAML if the Accept header names the kind."""
    chosen = _negotiated(request.headers.get("accept", ""), kind)
    if chosen is None:
        return Response(200, [(b"Content-Type", b"text/plain; charset=utf-8")], text.encode())
    serializer, version = chosen
    document = {"kind": kind, "apiVersion": f"{GROUP}/{version}", "metadata": {"name": NAME}, **value}
    headers = [(b"Content-Type", f"{serializer};g={GROUP};v={version};as={kind}".encode())]
    if version == "v1alpha1":
        page = kind.lower()
        warning = f'299 - "This version of the {page} endpoint is deprecated. Please use a newer version."'
        headers.append((b"Warning", warning.encode()))
    if serializer == negotiate.YAML:
        return Response(200, headers, yaml.dumps(document))
    if negotiate.wants_pretty(parse_query(request.query), request.headers.get("user-agent", "")):
        return Response(200, headers, indented(document))
    return Response(200, headers, orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE))


def _negotiated(accept: str, kind: str) -> tuple[str, str] | None:
    """Serializer and version; None for text. Raises 406."""
    clauses = negotiate.parse_accept(accept)
    if not clauses:
        return None
    for clause in clauses:
        parameters = dict(clause.parameters)
        for serializer in OFFERED:
            if not clause.names(serializer):
                continue
            if serializer == "text/plain":
                return None
            group_kind = (parameters.get("g"), parameters.get("as"))
            if group_kind == (GROUP, kind) and parameters.get("v") in VERSIONS:
                return serializer, parameters["v"]
    raise negotiate.NotAcceptable(OFFERED)


def shown_flags(config: Config) -> dict[str, str]:
    """Values of all flags by name, as Go writes them."""
    flags = dict(config.flagz)
    for field in dataclasses.fields(config):
        if field.name not in _HIDDEN:
            name = _RENAMED.get(field.name, field.name.replace("_", "-"))
            flags[name] = _written(field.name, getattr(config, field.name))
    flags["audit-webhook-batch-initial-backoff"] = flags["audit-webhook-initial-backoff"]
    flags["disable-http2-serving"] = _written("", not config.http2)
    return dict(sorted(flags.items()))


def _written(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{(';' if name == 'tls_sni_cert_key' else ',').join(value)}]"
    if isinstance(value, dict):
        return ",".join(f"{key}={_written(key, each)}" for key, each in sorted(value.items()))
    if isinstance(value, int | float):
        return durations.written(value) if name in _DURATIONS else f"{value:g}"
    return str(value)
