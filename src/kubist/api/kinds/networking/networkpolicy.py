"""NetworkPolicy: allowed incoming and outgoing traffic of pods, by peers and ports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kubist.api.kinds.shared.ip import cidr_warnings, parse_cidr, validate_cidr
from kubist.api.kinds.shared.values import validate_port, validate_port_or_name
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta.fields import forbidden, invalid, not_supported, required
from kubist.model.meta.labels import validate_selector
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

PROTOCOLS = ("TCP", "UDP", "SCTP")
POLICY_TYPES = ("Ingress", "Egress")
_DIRECTIONS = (("ingress", "from"), ("egress", "to"))


class NetworkPolicyStrategy(Strategy):
    generation_fields = ("spec",)
    empty_is_change = True

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
        for direction, _ in _DIRECTIONS:
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    port.setdefault("protocol", "TCP")

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        if old is None:
            return _validate_spec(new["spec"])
        before = old["spec"]
        known = [cidr for _, cidr in _cidrs(before)]
        tolerant = bool(validate_selector(before.get("podSelector"), ""))
        return _validate_spec(new["spec"], known, allow_invalid_values=tolerant)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return _warnings(new)


def _cidrs(spec: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, CIDR) of every CIDR in a policy."""
    for direction, peers in _DIRECTIONS:
        for i, rule in enumerate(spec.get(direction) or ()):
            for j, peer in enumerate(rule.get(peers) or ()):
                if (block := peer.get("ipBlock")) is not None:
                    path = f"spec.{direction}[{i}].{peers}[{j}].ipBlock"
                    yield f"{path}.cidr", block.get("cidr", "")
                    for k, cidr in enumerate(block.get("except") or ()):
                        yield f"{path}.except[{k}]", cidr


def _warnings(policy: Object) -> Iterator[str]:
    for path, cidr in _cidrs(policy["spec"]):
        yield from cidr_warnings(cidr, path)


def _validate_spec(
    spec: dict[str, Any], known: Iterable[str] = (), *, allow_invalid_values: bool = False
) -> Errors:
    old_cidrs = frozenset(known)
    errors = validate_selector(
        spec.get("podSelector"), "spec.podSelector", allow_invalid_values=allow_invalid_values
    )
    for direction, peers in _DIRECTIONS:
        for i, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{i}]"
            for j, port in enumerate(rule.get("ports") or ()):
                errors += _validate_port(port, f"{path}.ports[{j}]")
            for j, peer in enumerate(rule.get(peers) or ()):
                errors += _validate_peer(peer, f"{path}.{peers}[{j}]", old_cidrs, allow_invalid_values)
    types = spec.get("policyTypes") or []
    if len(types) > len(POLICY_TYPES):
        errors.append(invalid("spec.policyTypes", types, "may not specify more than two policyTypes"))
        return errors
    return errors + [
        not_supported(f"spec.policyTypes[{i}]", kind, POLICY_TYPES)
        for i, kind in enumerate(types)
        if kind not in POLICY_TYPES
    ]


def _validate_port(port: dict[str, Any], path: str) -> Errors:
    errors: Errors = []
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None and protocol not in PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", protocol, PROTOCOLS))
    if number is None:
        if end is not None:
            detail = "may not be specified when `port` is not specified"
            errors.append(invalid(f"{path}.endPort", end, detail))
        return errors
    if isinstance(number, str):
        if end is not None:
            detail = "may not be specified when `port` is non-numeric"
            errors.append(invalid(f"{path}.endPort", end, detail))
        return errors + validate_port_or_name(number, f"{path}.port")
    errors += validate_port(number, f"{path}.port")
    if end is not None:
        if end < number:
            errors.append(invalid(f"{path}.endPort", number, "must be greater than or equal to `port`"))
        errors += validate_port(end, f"{path}.endPort")
    return errors


def _validate_peer(
    peer: dict[str, Any], path: str, old_cidrs: frozenset[str], allow_invalid_values: bool
) -> Errors:
    errors: Errors = []
    for field in ("podSelector", "namespaceSelector"):
        if (selector := peer.get(field)) is not None:
            errors += validate_selector(
                selector, f"{path}.{field}", allow_invalid_values=allow_invalid_values
            )
    block = peer.get("ipBlock")
    if block is not None:
        errors += _validate_block(block, f"{path}.ipBlock", old_cidrs)
        if len(peer) > 1:
            errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    elif not peer:
        errors.append(required(path, "must specify a peer"))
    return errors


def _validate_block(block: dict[str, Any], path: str, old_cidrs: frozenset[str]) -> Errors:
    cidr = block.get("cidr", "")
    if not cidr:
        return [required(f"{path}.cidr")]
    errors = validate_cidr(cidr, f"{path}.cidr", old_cidrs)
    network = parse_cidr(cidr)
    if network is None:
        return errors
    for i, text in enumerate(block.get("except") or ()):
        where = f"{path}.except[{i}]"
        errors += validate_cidr(text, where, old_cidrs)
        inner = parse_cidr(text)
        if inner is not None and (
            inner.version != network.version
            or inner.network_address not in network
            or inner.prefixlen <= network.prefixlen
        ):
            errors.append(invalid(where, text, "must be a strict subset of `cidr`"))
    return errors


strategy = NetworkPolicyStrategy()
