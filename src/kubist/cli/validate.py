"""`kubist validate`: reports what the server would say about manifests, without a running server."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from kubist.cli import flags, help
from kubist.cli.exits import FAILED, OK, USAGE, fail

if TYPE_CHECKING:
    # Saves start-up time: wrong flags and `--help` need no server.
    from kubist.testing.offline.findings import Report
    from kubist.testing.offline.validation import Inputs

OUTPUTS = ("text", "json", "junit", "sarif")
FAIL_ON = ("error", "warning")
_OF_SERVER = (
    "admission-control-config-file",
    "disable-admission-plugins",
    "enable-admission-plugins",
    "feature-gates",
    "runtime-config",
)
FLAGS = (
    flags.Flag("crds", "strings", "", "Files or directories with CRDs. May be repeated.", "Input"),
    flags.Flag(
        "policies", "strings", "", "Files or directories with admission policies. May be repeated.", "Input"
    ),
    flags.Flag(
        "against", "string", "", "Old state: a directory of manifests, or a kubeconfig of a server.", "Input"
    ),
    flags.Flag(
        "context", "string", "", "Context of that kubeconfig. Without it: the current context.", "Input"
    ),
    flags.Flag("exclude", "stringArray", "", "Pattern of files to leave out. May be repeated.", "Input"),
    flags.Flag("as", "string", "", "User who applies the manifests; RBAC is checked for this user.", "Rules"),
    flags.Flag("as-group", "stringArray", "", "Group of that user. May be repeated.", "Rules"),
    flags.Flag("field-manager", "string", "kubectl", "Field manager that applies the manifests.", "Rules"),
    flags.Flag("namespace", "string", "default", "Namespace of objects that name none.", "Rules", "n"),
    flags.Flag(
        "strict-namespaces", "bool", "false", "Reject objects in namespaces that do not exist.", "Rules"
    ),
    flags.Flag(
        "pod-templates", "bool", "true", "Check the pods of Deployments and other workloads too.", "Rules"
    ),
    flags.Flag("allow-unknown-kinds", "bool", "false", "Report kinds without a CRD as warnings.", "Rules"),
    flags.Flag("output", "|".join(OUTPUTS), "text", "Form of the report.", "Output", "o"),
    flags.Flag(
        "output-file", "string", "", "Write the report to a file, and text to standard output.", "Output"
    ),
    flags.Flag(
        "show-defaults", "bool", "false", "Print the objects as the server would store them.", "Output"
    ),
    flags.Flag("fail-on", "|".join(FAIL_ON), "error", "Findings that make the exit code 1.", "Output"),
    *(
        flag._replace(group="Server")
        for name, flag in flags.of_kube_apiserver().items()
        if name in _OF_SERVER
    ),
)
TITLE = """\
Reports what the API server would say about manifests, without a running server: unknown fields, schemas, CEL rules,
admission policies, PodSecurity, RBAC, deprecations, and rules for updates.

Usage:
  kubist validate [flags] FILE|DIRECTORY|- ...

Exit codes: 0 valid, 1 findings, 2 wrong command line or unreadable input.

Example:
  kubist validate manifests/ --crds crds/ --output sarif"""


def main(arguments: list[str]) -> int:
    known = {flag.name: flag for flag in FLAGS}
    files, options = _separate(arguments, known)
    values = flags.parse(options, known)
    if "help" in values:
        return help.show(TITLE, FLAGS)
    if not files:
        raise flags.FlagError("no manifests: the usage is kubist validate [flags] FILE|DIRECTORY|- ...")
    _check_values(values)
    # Saves start-up time: wrong flags and `--help` need no server.
    from kubist.server.runtime.run import explain, new_event_loop
    from kubist.testing.offline.validation import DEFAULTS, check

    of_server = {name: texts for name, texts in values.items() if name in _OF_SERVER}
    config = flags.config(of_server, {name: known[name] for name in _OF_SERVER}, DEFAULTS)
    loud = logging.getLogger("kubist")
    level = loud.level
    loud.setLevel(logging.CRITICAL + 1)  # every failure is a finding
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            report = runner.run(check(_inputs(files, values), config))
        _print(report, values)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        return fail(explain(error) if isinstance(error, OSError) else str(error), USAGE)
    finally:
        loud.setLevel(level)
    if not report.is_complete:
        return USAGE
    counted = report.findings if _last(values, "fail-on", "error") == "warning" else report.errors
    return FAILED if counted else OK


def _separate(arguments: list[str], known: dict[str, flags.Flag]) -> tuple[list[str], list[str]]:
    """Files, and flags with their values. Everything after `--` is a file."""
    files: list[str] = []
    options: list[str] = []
    rest = list(arguments)
    shorts = {flag.short: flag.name for flag in known.values() if flag.short}
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*files, *rest], options
        if word == "-" or not word.startswith("-"):
            files.append(word)
            continue
        options.append(word)
        name = word.lstrip("-")
        flag = known.get(shorts.get(name) or name.replace("_", "-"))
        if flag is not None and flag.type != "bool" and rest:
            options.append(rest.pop(0))
    return files, options


def _last(values: dict[str, list[str]], name: str, default: str = "") -> str:
    return values.get(name, [default])[-1]


def _paths(values: dict[str, list[str]], name: str) -> list[Path]:
    return [Path(part) for value in values.get(name, ()) for part in value.split(",") if part]


def _inputs(files: list[str], values: dict[str, list[str]]) -> Inputs:
    # Saves start-up time: wrong flags and `--help` need no server.
    from kubist.testing.offline.checking import Options
    from kubist.testing.offline.server import Identity
    from kubist.testing.offline.validation import Inputs

    groups = tuple(values.get("as-group", ()))
    options = Options(
        namespace=_last(values, "namespace", "default"),
        strict_namespaces=flags.is_on(values, "strict-namespaces"),
        identity=Identity(_last(values, "as"), groups),
        field_manager=_last(values, "field-manager", "kubectl"),
        pod_templates=flags.is_on({"pod-templates": ["true"], **values}, "pod-templates"),
        allow_unknown_kinds=flags.is_on(values, "allow-unknown-kinds"),
        keep_objects=flags.is_on(values, "show-defaults"),
    )
    return Inputs(
        [file if file == "-" else Path(file) for file in files],
        _paths(values, "crds"),
        _paths(values, "policies"),
        _last(values, "against"),
        _last(values, "context"),
        values.get("exclude", ()),
        options,
    )


def _check_values(values: dict[str, list[str]]) -> None:
    output, fail_on = _last(values, "output", "text"), _last(values, "fail-on", "error")
    if output not in OUTPUTS:
        raise flags.FlagError(f"--output must be {', '.join(OUTPUTS[:-1])} or {OUTPUTS[-1]}, not {output!r}")
    if fail_on not in FAIL_ON:
        raise flags.FlagError(f"--fail-on must be {' or '.join(FAIL_ON)}, not {fail_on!r}")
    if flags.is_on(values, "show-defaults") and output not in ("text", "json"):
        raise flags.FlagError("--show-defaults needs --output text or json")
    if "as-group" in values and not _last(values, "as"):
        raise flags.FlagError("--as-group needs --as: groups belong to a user")
    if "context" in values and "against" not in values:
        raise flags.FlagError("--context needs --against with a kubeconfig")
    if not _last(values, "namespace", "default"):
        raise flags.FlagError("--namespace needs a name")


def _print(report: Report, values: dict[str, list[str]]) -> None:
    """Prints the report. With --show-defaults as text, objects go to standard output and findings to standard error."""
    # Saves start-up time: wrong flags and `--help` need no server.
    from kubist.model.codec import yaml
    from kubist.testing.offline.reports import json_report, junit, sarif, stored_object, text

    output, file = _last(values, "output", "text"), _last(values, "output-file")
    shows = flags.is_on(values, "show-defaults")
    stream = sys.stderr if shows and output == "text" else sys.stdout
    if shows and output == "text":
        objects = [stored for checked in report.objects if (stored := stored_object(checked)) is not None]
        _write(sys.stdout, "---\n".join(yaml.dumps(stored).decode() for stored in objects))
    if output == "text" or file:
        _write(stream, text(report, stream))
    if output == "text" and not file:
        return
    made = {
        "text": lambda: text(report),
        "json": lambda: json_report(report, with_objects=shows),
        "junit": lambda: junit(report, fail_on_warning=_last(values, "fail-on") == "warning"),
        "sarif": lambda: sarif(report),
    }[output]()
    if file:
        Path(file).write_text(made, encoding="utf-8", errors="replace")
    else:
        _write(sys.stdout, made)


def _write(stream: TextIO, made: str) -> None:
    """Prints text in any encoding of the terminal."""
    encoding = stream.encoding or "utf-8"
    stream.write(made.encode(encoding, "backslashreplace").decode(encoding))
