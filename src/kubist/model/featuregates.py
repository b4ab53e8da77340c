"""Feature gates of kube-apiserver v1.36: names, stages, defaults, locks, and the values that `--feature-gates` sets.

The table is `featuregates.json`. Its rows are name, stage, default, whether the gate is locked to its default, and the
gates that it depends on. A server acts on the gates of `EFFECTIVE`; other gates are checked and otherwise ignored.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger("kubist")

EFFECTIVE = {
    "APIResponseCompression": True,
    "AllowParsingUserUIDFromCertAuth": True,
    "ComponentFlagz": True,
    "ComponentStatusz": True,
    "ConstrainedImpersonation": True,
    "MutatingAdmissionPolicy": True,
    "PodTopologyLabelsAdmission": True,
    "RemoteRequestHeaderUID": True,
    "SizeBasedListCostEstimate": True,
    "StorageVersionHash": True,
    "WatchList": True,
}
"""Gates that this server acts on, with their defaults."""

REJECTED = {
    "AllowServiceExternalIPs": "use --enable-admission-plugins=DenyServiceExternalIPs to forbid external IPs",
    "StrictIPCIDRValidation": "IP addresses and CIDRs are always validated strictly",
    "AuthorizePodWebsocketUpgradeCreatePermission": "exec, attach and portforward always need the verb create",
    "ServiceAccountNodeAudienceRestriction": "the Node authorizer and NodeRestriction always check audiences",
}
"""Gates that change access control or validation and cannot leave their default → advice."""

MISSING = {
    "CBORServingAndStorage": "CBOR is not served. Requests with a body in CBOR get 415, and requests that accept "
    "nothing else get 406"
}
"""Gates of formats that clients of kube-apiserver can ask for, and that this server does not have → effect."""

_ALL = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))


class Gate(NamedTuple):
    stage: str
    """ALPHA, BETA, GA or DEPRECATED."""
    default: bool
    locked: bool
    needs: tuple[str, ...] = ()


@cache
def known() -> dict[str, Gate]:
    """All gates by name, sorted."""
    rows = json.loads(Path(__file__).with_name("featuregates.json").read_bytes())
    return {row[0]: Gate(row[1], row[2], row[3], tuple(row[4] if len(row) > 4 else ())) for row in rows}


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
    wanted: dict[str, bool] = {}
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
            wanted[name] = text in _TRUE
    return wanted


def resolved(wanted: Mapping[str, bool]) -> dict[str, bool]:
    """Values of all gates. Raises ValueError for unknown and locked gates and for missing dependencies."""
    gates = known()
    errors = []
    for name, value in wanted.items():
        gate = gates.get(name)
        if gate is None:
            raise ValueError(f"unrecognized feature gate: {name}")
        if gate.locked and gate.default != value:
            errors.append(
                f"cannot set feature gate {name} to {_go(value)}, feature is locked to {_go(gate.default)}"
            )
    values = {name: gate.default for name, gate in gates.items()}
    for switch, stage in _ALL.items():
        if switch in wanted:
            values |= {name: wanted[switch] for name, gate in gates.items() if gate.stage == stage}
    values |= wanted
    for switch in _ALL:
        values[switch] = wanted.get(switch, False)
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


def check(wanted: Mapping[str, bool]) -> None:
    """Raises ValueError for gates that cannot be set."""
    for name, value in _changed(wanted).items():
        if name in REJECTED:
            raise ValueError(f"--feature-gates={name}={_go(value)} is not supported: {REJECTED[name]}")


def log_ineffective(wanted: Mapping[str, bool]) -> None:
    """Logs the gates that have no effect here."""
    for name, value in _changed(wanted).items():
        if name not in EFFECTIVE and name not in MISSING:
            log.warning(
                "--feature-gates=%s=%s has no effect here: the server behaves as with %s=%s",
                *(name, _go(value), name, _go(not value)),
            )
    for name, effect in MISSING.items():
        if wanted and resolved(wanted)[name]:
            log.warning("--feature-gates=%s=true: %s", name, effect)


def _changed(wanted: Mapping[str, bool]) -> dict[str, bool]:
    """Named gates that leave their default."""
    if not wanted:
        return {}
    values, gates = resolved(wanted), known()
    return {name: values[name] for name in wanted if name not in _ALL and values[name] != gates[name].default}


def enabled(wanted: Mapping[str, bool], name: str) -> bool:
    """Whether a gate of `EFFECTIVE` is on. `wanted` is `Config.feature_gates`."""
    return resolved(wanted)[name] if wanted else EFFECTIVE[name]


def _go(value: bool) -> str:
    return "true" if value else "false"
