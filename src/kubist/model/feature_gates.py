"""Feature gates of kube-apiserver: names, stages, defaults, locks, and the values that `--feature-gates` sets.

The table is `feature_gates.json`, made by `tools/make_gates.py`. For each gate, `gates` has one row per Kubernetes
version in which it changed: version, stage, default, and whether the gate is locked to its default. `needs` has the
gates that a gate depends on. A server acts on the gates of `EFFECTIVE`; other gates are checked and otherwise ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from kubist.model.versions import SERVED, Version, parse_version

log = logging.getLogger("kubist")

EFFECTIVE = (
    "APIResponseCompression",
    "AllowParsingUserUIDFromCertAuth",
    "ComponentFlagz",
    "ComponentStatusz",
    "ConstrainedImpersonation",
    "MutatingAdmissionPolicy",
    "PodTopologyLabelsAdmission",
    "RemoteRequestHeaderUID",
    "SizeBasedListCostEstimate",
    "StorageVersionHash",
    "WatchList",
)
"""Gates that this server acts on."""

REJECTED = {
    "AllowServiceExternalIPs": "use --enable-admission-plugins=DenyServiceExternalIPs to forbid external IPs",
    "StrictIPCIDRValidation": "IP addresses and CIDRs are always validated strictly",
    "AuthorizePodWebsocketUpgradeCreatePermission": "exec, attach and portforward always need the verb create",
    "ServiceAccountNodeAudienceRestriction": "the Node authorizer and NodeRestriction always check audiences",
}
"""Gates that change access control or validation and must keep their default → advice."""

MISSING = {
    "CBORServingAndStorage": "CBOR is not served. Requests with a body in CBOR get 415, and requests that accept "
    "nothing else get 406"
}
"""Gates of formats that kube-apiserver offers and this server lacks → effect."""

_ALL = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))


class Gate(NamedTuple):
    stage: str
    """ALPHA, BETA, GA or DEPRECATED."""
    default: bool
    locked: bool
    needs: tuple[str, ...] = ()


def _table() -> dict[str, Any]:
    loaded: dict[str, Any] = orjson.loads(Path(__file__).with_name("feature_gates.json").read_bytes())
    return loaded


def _gate(rows: list[list[Any]], version: Version) -> Gate | None:
    """Gate with these rows in a version. None if the version does not know it."""
    rows = [row for row in rows if parse_version(row[0]) <= version]
    return None if not rows or rows[-1][1] == "REMOVED" else Gate(*rows[-1][1:])


def known(version: Version = SERVED) -> dict[str, Gate]:
    """All gates of a Kubernetes version by name, sorted."""
    return _known(version)


@cache
def _known(version: Version) -> dict[str, Gate]:
    table = _table()
    every = {name: _gate(rows, version) for name, rows in table["gates"].items()}
    gates = {name: gate for name, gate in every.items() if gate is not None}
    for name, needs in table["needs"].items():
        if name in gates:
            gates[name] = gates[name]._replace(needs=tuple(needed for needed in needs if needed in gates))
    return gates


@cache
def _defaults(version: Version) -> dict[str, bool]:
    """Defaults of the gates of `EFFECTIVE`, the only part of the table that most servers need."""
    rows = _table()["gates"]
    gates = {name: _gate(rows[name], version) for name in EFFECTIVE}
    return {name: gate is not None and gate.default for name, gate in gates.items()}


def parse(values: Iterable[str]) -> dict[str, bool]:
    """Gates of the values of `--feature-gates`. Raises ValueError in the words of the reference."""
    by_component: dict[str, list[str]] = {}
    for value in values:
        for part in value.split(","):
            component, colon, pair = part.partition(":")
            if part:
                by_component.setdefault(component.strip() if colon else "", []).append(
                    pair if colon else part
                )
    if "" in by_component and "kube" in by_component:
        raise ValueError(
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"
        )
    flags: dict[str, bool] = {}
    for component, pairs in by_component.items():
        if component not in ("", "kube"):
            raise ValueError(f"component not registered: {component}")
        for pair in pairs:
            name, equals, text = (word.strip() for word in pair.partition("="))
            if not equals:
                raise ValueError(f"missing bool value for {name}")
            if text not in _TRUE and text not in _FALSE:
                why = f'strconv.ParseBool: parsing "{text}": invalid syntax'
                raise ValueError(f"invalid value of {name}={text}, err: {why}")
            flags[name] = text in _TRUE
    return flags


def resolved(flags: Mapping[str, bool], version: Version = SERVED) -> dict[str, bool]:
    """Values of all gates. Raises ValueError for unknown and locked gates and for missing dependencies."""
    gates = known(version)
    errors = []
    for name, value in flags.items():
        gate = gates.get(name)
        if gate is None:
            raise ValueError(f"unrecognized feature gate: {name}")
        if gate.locked and gate.default != value:
            errors.append(
                f"cannot set feature gate {name} to {_go(value)}, feature is locked to {_go(gate.default)}"
            )
    values = {name: gate.default for name, gate in gates.items()}
    for switch, stage in _ALL.items():
        if switch in flags:
            values |= {name: flags[switch] for name, gate in gates.items() if gate.stage == stage}
    values |= flags
    for switch in _ALL:
        values[switch] = flags.get(switch, False)
    if not errors:
        for name, gate in gates.items():
            missing = [needed for needed in gate.needs if not values[needed]]
            if values[name] and missing:
                errors.append(
                    f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]"
                )
    if errors:
        raise ValueError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return values


def check(flags: Mapping[str, bool]) -> None:
    """Raises ValueError for gates that cannot be set."""
    for name, value in _changed(flags).items():
        if name in REJECTED:
            raise ValueError(f"--feature-gates={name}={_go(value)} is not supported: {REJECTED[name]}")


def log_ineffective(flags: Mapping[str, bool]) -> None:
    """Logs the gates that have no effect here."""
    for name, value in _changed(flags).items():
        if name not in EFFECTIVE and name not in MISSING:
            log.warning(
                "--feature-gates=%s=%s has no effect here: the server behaves as with %s=%s",
                *(name, _go(value), name, _go(not value)),
            )
    for name, effect in MISSING.items():
        if flags and resolved(flags)[name]:
            log.warning("--feature-gates=%s=true: %s", name, effect)


def _changed(flags: Mapping[str, bool]) -> dict[str, bool]:
    """Named gates that differ from their default."""
    if not flags:
        return {}
    values, gates = resolved(flags), known()
    return {name: values[name] for name in flags if name not in _ALL and values[name] != gates[name].default}


def enabled(flags: Mapping[str, bool], name: str, version: Version = SERVED) -> bool:
    """Whether a gate of `EFFECTIVE` is on. `flags` is `Config.feature_gates`."""
    return resolved(flags, version)[name] if flags else _defaults(version)[name]


def _go(value: bool) -> str:
    return "true" if value else "false"
