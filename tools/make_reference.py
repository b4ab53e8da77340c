#!/usr/bin/env python3
"""Make the generated pages of the documentation from the code.

    python tools/make_reference.py

`tests/docs/test_reference.py` compares the pages with the code.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import json
import re
import runpy
import ssl
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kubist
from kubist.api.config import SERVE_DEFAULTS
from kubist.cli import flags
from kubist.testing import Cluster

DOCS = Path(__file__).parent.parent / "docs"
DEVIATIONS = Path(__file__).parent.parent / "tests" / "conformance" / "deviations.md"
MADE = "This page is made from the code by `tools/make_reference.py`.\n"


def settings_page() -> str:
    """docs/reference/settings.md: every field of Config."""
    documented = _field_comments(Path(inspect.getfile(kubist.Config)).read_text())
    help_of = {_field_of(flag.name): flag for flag in flags.of_kube_apiserver().values()}
    rows = []
    for field in dataclasses.fields(kubist.Config):
        flag = help_of.get(field.name)
        text = documented.get(field.name) or (flag.help if flag else "")
        default = _default(field)
        served = getattr(SERVE_DEFAULTS, field.name)
        if served != default:
            text = f"{text} `kubist.Server`: `{served!r}`.".strip()
        if flag:
            text = f"{text} Flag: `--{flag.name}`.".strip()
        rows.append(f"| `{field.name}` | `{field.type}` | `{default!r}` | {_cell(text)} |")
    return "\n".join(
        (
            "# Settings",
            "",
            "```python",
            "import kubist",
            "",
            "with kubist.Server(secure_port=0, workloads=True) as server:",
            "    print(server.url)",
            "```",
            "",
            "The keyword arguments of `kubist.Server`, `kubist.testing.Cluster` and `@pytest.mark.kubist` are the",
            "fields of `kubist.Config`. A flag of `kubist apiserver` sets the field of its name. `kubist.Server` has",
            "the defaults of `kubist serve`; the table says where they differ from those of `kubist apiserver`.",
            "Files and directories may also be given as a `pathlib.Path`.",
            "",
            MADE,
            "| field | type | default | meaning |",
            "|---|---|---|---|",
            *rows,
            "",
        )
    )


def _field_of(flag: str) -> str:
    return flags.RENAMED.get(flag, flag.replace("-", "_"))


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _field_comments(source: str) -> dict[str, str]:
    """The string below each field of the class Config."""
    found: dict[str, str] = {}
    [config] = [
        node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == "Config"
    ]
    previous = ""
    for node in config.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            previous = node.target.id
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and previous:
            found[previous] = " ".join(str(node.value.value).split())
            previous = ""
    return found


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


CLASSES = (
    ("cluster", "kubist.testing.cluster", "Cluster"),
    ("kubist_host", "kubist.testing.host", "Host"),
    ("cluster.faults", "kubist.testing.faults", "ClusterFaults"),
    ("fault", "kubist.testing.faults", "Fault"),
    ("cluster.clock", "kubist.testing.clock", "ClusterClock"),
    ("cluster.user(…)", "kubist.testing.users", "ClusterUser"),
    ("request of an admission webhook", "kubist.testing.webhooks.admission", "AdmissionRequest"),
    ("request of an authorizer", "kubist.testing.webhooks.authorizer", "AuthorizationRequest"),
    ("cluster.clients", "kubist.testing.clients", "Clients"),
    ("cluster.pods(…)", "kubist.testing.workloads", "Pods"),
    ("cluster.node(…)", "kubist.testing.workloads", "Node"),
    ("server", "kubist.server.inprocess", "Server"),
)
"""Sections of docs/reference/cluster.md: how a test reaches the object, and its class."""


def cluster_page() -> str:
    """docs/reference/cluster.md: public methods of the classes that tests use."""
    parts = [
        "# Cluster and fixtures",
        "",
        "```python",
        "def test_namespaces(cluster):",
        '    assert cluster.get("namespace/default")["status"] == {"phase": "Active"}',
        "```",
        "",
        MADE,
        "## Fixtures",
        "",
        "| fixture | scope | meaning |",
        "|---|---|---|",
        *_fixtures(),
        "",
    ]
    for title, module, name in CLASSES:
        described = getattr(importlib.import_module(module), name)
        parts += [
            f"## {title}",
            "",
            f"`{module}.{name}`. {_sentence(described)}",
            "",
            "| member | meaning |",
            "|---|---|",
        ]
        parts += [f"| `{_cell(member)}` | {_cell(text)} |" for member, text in _members(described)]
        parts.append("")
    return "\n".join(parts)


def _fixtures() -> Iterator[str]:
    source = (Path(kubist.__file__).parent / "testing" / "plugin.py").read_text()
    for node in ast.parse(source).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            text = ast.unparse(decorator)
            if text.startswith("pytest.fixture"):
                scope = re.search(r"scope='(\w+)'", text)
                name = re.search(r"name='(\w+)'", text)
                shown = name[1] if name else node.name
                if not shown.startswith("_"):
                    doc = _cell(ast.get_docstring(node) or "")
                    yield f"| `{shown}` | {scope[1] if scope else 'function'} | {doc} |"


def _sentence(described: Any) -> str:
    """First paragraph of a docstring."""
    return " ".join((inspect.getdoc(described) or "").partition("\n\n")[0].split())


def _members(described: type) -> Iterator[tuple[str, str]]:
    """Signature and docstring of each public member, in the order of the source; those of base classes last."""
    seen = set()
    for owner in described.__mro__:
        if not owner.__module__.startswith("kubist"):
            continue
        for name, member in vars(owner).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            text = inspect.getdoc(member)
            if text is None:
                continue
            if callable(member) or isinstance(member, classmethod | staticmethod):
                function: Callable[..., Any] = getattr(member, "__func__", member)
                yield name + _signature(function), text
            elif isinstance(member, property) or type(member).__name__ == "cached_property":
                yield name, text


def _signature(function: Callable[..., Any]) -> str:
    """Names and defaults of the parameters."""
    shown, named = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "unknown"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not named:
            shown.append("*")
        named = named or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        shown.append(f"{stars}{parameter.name}{default}")
    return f"({', '.join(shown)})"


def control_api_page() -> str:
    """docs/reference/control-api.md: operations below /kubist/v1/."""
    with Cluster(workloads=True, clusters=True) as cluster:
        document = cluster.request("GET", "/kubist/v1/openapi.json")
    parts = [
        "# Control API",
        "",
        "```bash",
        "kubectl get --raw /kubist/v1/clock",
        "```",
        "",
        "`kubist serve` and clusters of tests serve `/kubist/v1/`; `kubist apiserver` does with `--test-bench`.",
        "Bodies are JSON. Errors are a Kubernetes Status that names the field. A client needs the group",
        "`system:masters`, or an RBAC rule with `nonResourceURLs: [/kubist/*]`. [openapi.json](openapi.json) describes",
        "the operations for code generators; the server has the same document at `/kubist/v1/openapi.json`.",
        "",
        MADE,
        "| operation | meaning |",
        "|---|---|",
    ]
    for path, operations in sorted(document["paths"].items()):
        for method, operation in operations.items():
            parts.append(f"| `{method.upper()} {path}` | {_cell(operation['summary'])} |")
    parts += ["", "## Schemas", ""]
    for name, schema in sorted(document["components"]["schemas"].items()):
        rows = list(_properties(schema))
        if rows:
            described = schema.get("description", "")
            parts += [f"### {name}", "", *([described, ""] if described else [])]
            parts += ["| field | type | meaning |", "|---|---|---|", *rows, ""]
    return "\n".join(parts)


def openapi_file() -> str:
    """docs/reference/openapi.json: the document of /kubist/v1/openapi.json, for code generators."""
    with Cluster(workloads=True, clusters=True) as cluster:
        document = cluster.request("GET", "/kubist/v1/openapi.json")
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _properties(schema: dict[str, Any]) -> Iterator[str]:
    if "allOf" in schema:
        for part in schema["allOf"]:
            yield from _properties(part)
    for name, field in schema.get("properties", {}).items():
        yield f"| `{name}` | {_type(field)} | {_cell(field.get('description', ''))} |"


def _type(field: dict[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in field:
        return "one of " + ", ".join(f"`{value}`" for value in field["enum"])
    if "oneOf" in field or "anyOf" in field:
        return " or ".join(_type(each) for each in field.get("oneOf") or field["anyOf"])
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    return str(field.get("format") or field.get("type", "any"))


def metrics_page() -> str:
    """docs/reference/metrics.md: names, types and meanings of /metrics."""
    with Cluster() as cluster:
        text = _fetched(cluster, "/metrics")
    rows = []
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    for name, meaning in sorted(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE)):
        rows.append(f"| `{name}` | {kinds.get(name, '')} | {_cell(meaning)} |")
    return "\n".join(
        (
            "# Metrics",
            "",
            "```bash",
            "kubectl get --raw /metrics",
            "```",
            "",
            "`/metrics` has Prometheus' text format and kube-apiserver's names and labels. Labels never take values",
            "that a client can make up.",
            "",
            MADE,
            "| metric | type | meaning |",
            "|---|---|---|",
            *rows,
            "",
        )
    )


def _fetched(cluster: Cluster, path: str) -> str:
    request = urllib.request.Request(cluster.url + path, headers={"Authorization": f"Bearer {cluster.token}"})
    context = ssl.create_default_context(cafile=str(cluster.ca))
    with urllib.request.urlopen(request, context=context, timeout=30) as answer:
        body: bytes = answer.read()
    return body.decode()


MISSING = (
    ("containers, images, networks", "Kubist runs no containers. `--workloads` simulates pods."),
    ("etcd's own API", "The embedded store is not reachable by `etcdctl`. Use `kubist backup`."),
    (
        "metrics `apiserver_flowcontrol_demand_seats*`, `target_seats`, `seat_fair_frac`, `*_utilization`, "
        "`current_r`, `dispatch_r`, `latest_s`, `next_*_bounds`",
        "Priority levels borrow free seats at once, so nothing is divided anew every ten seconds.",
    ),
    ("encryption by `kms` providers", "The start is refused. Use `aesgcm`, `aescbc` or `secretbox`."),
    (
        "admission plugins `EventRateLimit` and `ImagePolicyWebhook`",
        "The start is refused if they are enabled.",
    ),
    (
        "`--egress-selector-config-file`, `--tracing-config-file`",
        "The start is refused; see [flags](flags.md).",
    ),
    (
        "CBOR (`application/cbor`, the gate `CBORServingAndStorage`), which is alpha and off by default",
        "Bodies in CBOR get 415. Requests that accept nothing else get 406, as with the gate off. No client needs it, "
        "and every stored object would need one more representation.",
    ),
    ("alpha API versions", "[Flags](flags.md#api-versions) lists the versions that can be switched on."),
)
"""Parts of kube-apiserver that Kubist does not have, and the effect."""


def compatibility_page() -> str:
    """docs/compatibility.md: equal, different and missing parts. The differences are those of deviations.md."""
    deviations = DEVIATIONS.read_text().partition("\n")[2].strip()
    return "\n".join(
        (
            "# Compatibility",
            "",
            "```bash",
            "kubectl version",
            "```",
            "",
            "Kubist implements the API of Kubernetes v1.36. Paths, verbs, fields, defaults, validation, status codes",
            "and error messages are those of kube-apiserver. Two kinds of tests show it: recorded conversations with",
            "kube-apiserver, which are replayed in every test run, and [software of others](ecosystem.md).",
            "",
            MADE,
            "## Equal",
            "",
            "- All stable API groups, resources, subresources and verbs, custom resources, aggregated API servers",
            "- JSON, YAML, protobuf, tables, partial metadata; HTTP/1.1, HTTP/2, WebSocket and SPDY",
            "- Watches, bookmarks, streaming lists, chunks, resource versions, conflicts, server-side apply",
            "- Authentication, RBAC, Node, ABAC and webhook authorization, impersonation, audit, priority and fairness",
            "- Admission plugins, webhooks, validating and mutating admission policies, Pod Security",
            "- Keys and values in etcd: a kube-apiserver can use the same etcd ([moving](guides/moving.md))",
            "- The control loops and simulated workloads that [serve](serve.md) and [workloads](workloads.md) list",
            "",
            "## Missing",
            "",
            "| part | effect |",
            "|---|---|",
            *(f"| {part} | {effect} |" for part, effect in MISSING),
            "",
            "## Different",
            "",
            deviations,
            "",
        )
    )


PAGES: dict[str, Callable[[], str]] = {
    "reference/settings.md": settings_page,
    "reference/cluster.md": cluster_page,
    "reference/control-api.md": control_api_page,
    "reference/openapi.json": openapi_file,
    "reference/metrics.md": metrics_page,
    "reference/limits.md": runpy.run_path(str(Path(__file__).with_name("make_limits.py")))["page"],
    "compatibility.md": compatibility_page,
}


def main() -> None:
    for name, made in PAGES.items():
        path = DOCS / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(made())
        print(path)


if __name__ == "__main__":
    main()
