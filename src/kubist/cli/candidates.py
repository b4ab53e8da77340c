"""Candidates of shell completion: commands, flags, and values of flags.

A shell asks with the words of a command line up to the cursor. Each candidate is a whole word, because shells differ
in how they split `--flag=value`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from kubist.cli.commands import all_commands
from kubist.cli.flaglist import Flag, of_kube_apiserver

FILES, DIRECTORIES, COMMAND_LINE = ":files", ":directories", ":command"
"""Lines that ask the shell to complete paths, or the command line of another program."""
SHELLS = ("bash", "zsh", "fish")
_COLOURS = ("auto", "always", "never")
_VALUES = {
    "authorization-mode": ("AlwaysAllow", "AlwaysDeny", "ABAC", "RBAC", "Node", "Webhook"),
    "color": _COLOURS,
    "endpoint-reconciler-type": ("lease", "none", "master-count"),
    "log-format": ("text", "json"),
    "logging-format": ("text", "json"),
    "output": ("text", "json"),
    "storage": ("memory", "disk"),
    "runtime-config": ("api/all=true", "api/beta=true", "api/ga=true"),
    "tls-min-version": ("VersionTLS12", "VersionTLS13"),
    "v": ("0", "1", "3", "4"),
}
_DIRECTORIES = frozenset(("cert-dir", "data-dir"))
_NO_PATHS = frozenset(("int", "ip", "duration", "portRange", "Level", "float", "float32", "bool"))


def complete(words: list[str]) -> list[str]:
    """Candidates for the last word, each with a description after a tab."""
    before, current = words[:-1], words[-1] if words else ""
    while before and before[0].startswith("--color"):
        before = before[1:] if "=" in before[0] else before[2:]
        if not before and words[-2] == "--color":
            return _matching(_COLOURS, current)
    if not before:
        if current.startswith("-"):
            flags = (Flag("color", "string", ""), Flag("help", "bool", ""), Flag("version", "bool", ""))
            return _flag_or_value(current, {flag.name: flag for flag in flags})
        return [
            f"{name}\t{summary}" for name, (_, summary) in all_commands().items() if name.startswith(current)
        ]
    command = before[0]
    if command == "help":
        return _matching(all_commands(), current) if len(before) == 1 else []
    if command == "completion":
        return _matching(SHELLS, current) if len(before) == 1 else []
    if command == "clusters" and len(before) == 1 and not current.startswith("-"):
        return _matching(("list", "create", "delete", "kubeconfig"), current)
    return _argument(command, before[1:], current)


def _argument(command: str, before: list[str], current: str) -> list[str]:
    """Candidates for an argument of a command."""
    if command not in all_commands():
        return []
    if command == "exec" and "--" in before:
        return [COMMAND_LINE]
    flags = {flag.name: flag for flag in _flags(command)}
    shorts = {f"-{flag.short}": flag for flag in flags.values() if flag.short}
    if before:
        last = before[-1]
        asked = shorts.get(last) or (flags.get(last[2:]) if last.startswith("--") else None)
        if asked is not None and asked.type != "bool" and not asked.type.startswith("version"):
            return _values(asked, current)
    if current.startswith("-"):
        return _flag_or_value(current, flags)
    return [FILES] if command in ("envtest", "validate", "replay") else []


def _flags(command: str) -> Iterable[Flag]:
    if command == "apiserver":
        return of_kube_apiserver().values()
    if command == "envtest":
        return (Flag("warm", "bool", "", "Start a helper, so that kube-apiserver starts faster."),)
    place = all_commands()[command][0].partition(":")[0]
    found = getattr(import_module(f"kubist.cli.{place}"), "FLAGS", ())
    return tuple(found[command] if isinstance(found, dict) else found)


def _flag_or_value(current: str, flags: dict[str, Flag]) -> list[str]:
    name, equals, value = current.partition("=")
    if equals:
        flag = flags.get(name.lstrip("-"))
        if flag is None:
            return []
        values = _values(flag, value) if flag.type != "bool" else _matching(("true", "false"), value)
        return [found if found.startswith(":") else f"{name}={found}" for found in values]
    known = {**flags, "help": Flag("help", "bool", "", "Show the help.")}
    return [f"--{flag.name}\t{flag.help}" for flag in known.values() if f"--{flag.name}".startswith(current)]


def _values(flag: Flag, current: str) -> list[str]:
    """Values of a flag. In a list, the last item is completed."""
    start, comma, item = current.rpartition(",")
    listed = start + comma
    if flag.name == "controllers":
        # Saves start-up time: only this flag needs the control loops.
        from kubist.cluster.control.manager import available

        names = sorted(loop.name for loop in available())
        return _matching(["*", *names, *(f"-{name}" for name in names)], item, listed)
    if flag.name == "feature-gates":
        # Saves start-up time: only this flag needs the table.
        from kubist.model import feature_gates

        gates = [f"{name}={value}" for name in sorted(feature_gates.known()) for value in ("true", "false")]
        return _matching(gates, item, listed)
    if flag.name.endswith("-admission-plugins"):
        # Saves start-up time: only this flag needs the list.
        from kubist.api.admission.order import ORDER

        return _matching(sorted(ORDER), item, listed)
    if "|" in flag.type:
        return _matching(flag.type.split("|"), current)
    if flag.name in _VALUES:
        return _matching(_VALUES[flag.name], item, listed)
    if flag.name in _DIRECTORIES:
        return [DIRECTORIES]
    return [] if flag.type in _NO_PATHS else [FILES]


def _matching(names: Iterable[str], current: str, before: str = "") -> list[str]:
    return [before + name for name in names if name.startswith(current)]
