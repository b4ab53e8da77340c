"""Flags of kube-apiserver as data (`flags.json`), the parser of a command line, and its help.

Loads nothing else of Kubist, because test libraries call `kube-apiserver --help` before every start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import NamedTuple

from kubist.cli.exits import FlagError as FlagError
from kubist.cli.unsupported import HARMLESS, REJECTED


class Flag(NamedTuple):
    name: str
    type: str
    default: str
    help: str = ""
    group: str = ""
    short: str = ""
    """One letter: `f` for `-f`."""


WORKERS = Flag("workers", "int", "1", "Processes that serve the port together, on one store.")
TEST_BENCH = Flag("test-bench", "bool", "false", "Serve /kubist/v1/: control over this server for tests.")
OWN = (
    Flag("data-dir", "string", "", "Directory of the embedded store, used without --etcd-servers."),
    Flag("log-format", "string", "text", "Same as --logging-format."),
    Flag("http2", "bool", "true", "Offer HTTP/2 to clients that speak it."),
    Flag(
        "simulated-nodes",
        "int",
        "0",
        "Number of nodes to simulate for a kube-scheduler and kube-controller-manager that run elsewhere.",
    ),
    Flag("workload-delay", "duration", "0s", "Time that a simulated pod takes to become ready."),
    Flag("stages", "stringArray", "", "File or directory with KWOK Stages; the flag may be repeated."),
    Flag(
        "workload-node-capacity",
        "mapStringString",
        "",
        "Size of simulated nodes: cpu=4,memory=16Gi,pods=110.",
    ),
    Flag(
        "workload-node-labels",
        "mapStringString",
        "",
        "Labels of simulated nodes: topology.kubernetes.io/zone=zone-{i%3}.",
    ),
    WORKERS,
    TEST_BENCH,
)


def of_kube_apiserver() -> dict[str, Flag]:
    with open(os.path.join(os.path.dirname(__file__), "flags.json"), "rb") as file:
        groups = json.load(file)
    flags = {
        name: Flag(name, type_, default, help_[0] if help_ else "", group)
        for group, rows in groups.items()
        for name, type_, default, *help_ in rows
    }
    return flags | {flag.name: flag for flag in OWN}


def parse(arguments: Iterable[str], flags: dict[str, Flag]) -> dict[str, list[str]]:
    """Values given for each flag, in order. `--help` is part of the result."""
    values: dict[str, list[str]] = {}
    rest = list(arguments)
    shorts = {flag.short: flag.name for flag in flags.values() if flag.short}
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word in ("-", "--"):
            raise FlagError(f"unexpected argument {word!r}: this command takes flags only, see --help")
        name, equals, value = word.lstrip("-").partition("=")
        name = shorts.get(name) or name.replace("_", "-")
        if name in ("help", "h"):
            values["help"] = ["true"]
            continue
        flag = flags.get(name)
        if flag is None:
            raise FlagError(f"unknown flag: --{name}{_hint(name, flags)} `--help` lists the flags")
        if not equals:
            if flag.type == "bool" or flag.type.startswith("version"):
                value = "true"
            elif not rest:
                raise FlagError(f"flag needs an argument: --{name}")
            else:
                value = rest.pop(0)
        values.setdefault(name, []).append(value)
    return values


def _hint(name: str, flags: Iterable[str]) -> str:
    # Saves start-up time: only mistyped names need it.
    from kubist.base.hints import did_you_mean

    return did_you_mean(f"--{name}", (f"--{flag}" for flag in flags)) or ";"


def _absence(name: str) -> str:
    if name in REJECTED:
        return f"Not supported: {REJECTED[name].advice}."
    return f"Has no effect here: {HARMLESS[name]}." if name in HARMLESS else ""


def _group(flag: Flag) -> str:
    """Heading of a flag. Flags without an effect have their own."""
    if flag.name in HARMLESS:
        return _NO_EFFECT
    if flag.name in REJECTED:
        return _NOT_SUPPORTED
    return f"{flag.group or 'Kubist'} flags"


_NO_EFFECT = "Flags of kube-apiserver without effect here"
_NOT_SUPPORTED = "Flags of kube-apiserver that are not supported"


def usage(title: str, flags: Iterable[Flag]) -> str:
    """Help with one line per flag, in the columns that tools for kube-apiserver's help expect. Flags without an
    effect are last."""
    groups: dict[str, list[str]] = {}
    for flag in sorted(flags):
        kind = "" if flag.type == "bool" else " " + flag.type
        parts = [flag.help or _absence(flag.name)]
        if flag.default not in ("", "[]", "false"):
            parts.append(f"(default {flag.default})")
        line = f"      --{flag.name}{kind}".ljust(59) + "  " + " ".join(filter(None, parts))
        groups.setdefault(_group(flag), []).append(line.rstrip())
    last = (_NO_EFFECT, _NOT_SUPPORTED)
    order = [*sorted(groups.keys() - set(last), key=str.lower), *(name for name in last if name in groups)]
    return "\n".join([title, *(f"\n{name}:\n" + "\n".join(groups[name]) for name in order)]) + "\n"
