"""PriorityLevelConfiguration: concurrency limit of a priority level, and queuing or rejection of excess requests."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kubist.api import bootstrap
from kubist.api.kinds.flowcontrol.common import FlowControlStatus, FlowControlStrategy, validate_conditions
from kubist.api.kinds.shared.rules import at_least, at_most, field, struct
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Subresource
from kubist.model.meta import fields
from kubist.model.meta.object import Object
from kubist.model.schema.internals import internal_form

_ROUND_TRIP = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_MAX_QUEUES = 10_000_000
_HASH_BITS = 60
_PERCENT = "must be between 0 and 100, inclusive"
_QUEUING_DEFAULTS = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}


class PriorityLevelConfigurationStrategy(FlowControlStrategy):
    subresources: Mapping[str, Subresource] = {"status": FlowControlStatus()}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if (limited := spec.get("limited")) is not None:
            if limited.get("nominalConcurrencyShares") is None:
                limited["nominalConcurrencyShares"] = 30
            limited.setdefault("lendablePercent", 0)
            queuing = (limited.get("limitResponse") or {}).get("queuing")
            if queuing is not None:
                for name, value in _QUEUING_DEFAULTS.items():
                    queuing[name] = queuing.get(name) or value
        if (exempt := spec.get("exempt")) is not None:
            exempt.setdefault("nominalConcurrencyShares", 0)
            exempt.setdefault("lendablePercent", 0)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors = []
        if _ROUND_TRIP in (new["metadata"].get("annotations") or {}):
            why = f"annotation '{_ROUND_TRIP}' is forbidden"
            errors.append(fields.forbidden("metadata.annotations", why))
        name = new["metadata"].get("name", "")
        spec = new.get("spec") or {}
        errors += _validate_spec(spec, name)
        errors += _validate_mandatory(spec, name)
        return errors + validate_conditions(new.get("status") or {})


def _validate_mandatory(spec: Object, name: str) -> Errors:
    if name == "exempt":
        fixed = {**bootstrap.builtin("PriorityLevelConfiguration", name)["spec"], "exempt": None}
        if {**spec, "exempt": None} != fixed:
            why = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"
            return [
                fields.invalid("spec", internal_form("flowcontrol.PriorityLevelConfigurationSpec", spec), why)
            ]
    if name == "catch-all" and spec != bootstrap.builtin("PriorityLevelConfiguration", name)["spec"]:
        value = internal_form("flowcontrol.PriorityLevelConfigurationSpec", spec)
        return [fields.invalid("spec", value, "spec of 'catch-all' must equal the fixed value")]
    return []


def _validate_spec(spec: Object, name: str) -> Errors:
    errors = []
    kind = spec.get("type", "")
    limited = spec.get("limited")
    exempt = spec.get("exempt")
    if (name == "exempt") != (kind == "Exempt"):
        errors.append(fields.invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'"))
    if kind == "Exempt":
        if limited is not None:
            errors.append(fields.forbidden("spec.limited", "must be nil if the type is not Limited"))
        if exempt is not None:
            errors += _EXEMPT(exempt, "spec.exempt")
    elif kind == "Limited":
        if exempt is not None:
            errors.append(fields.forbidden("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            errors.append(fields.required("spec.limited", "must not be empty when type is Limited"))
        else:
            errors += _LIMITED(limited, "spec.limited")
    elif not kind:
        errors.append(fields.required("spec.type"))
    else:
        errors.append(fields.not_supported("spec.type", kind, ("Exempt", "Limited")))
    return errors


def _validate_response(response: Object | None, path: str) -> Errors:
    response = response or {}
    kind = response.get("type", "")
    queuing = response.get("queuing")
    if kind == "Reject":
        why = "must be nil if limited.limitResponse.type is not Limited"
        return [] if queuing is None else [fields.forbidden(f"{path}.queuing", why)]
    if kind == "Queue":
        if queuing is None:
            why = "must not be empty if limited.limitResponse.type is Limited"
            return [fields.required(f"{path}.queuing", why)]
        return _validate_queuing(queuing, f"{path}.queuing")
    if not kind:
        return [fields.required(f"{path}.type")]
    return [fields.not_supported(f"{path}.type", kind, ("Queue", "Reject"))]


def _validate_queuing(queuing: Object, path: str) -> Errors:
    errors = []
    length = queuing.get("queueLengthLimit", 0)
    queues = queuing.get("queues", 0)
    hand = queuing.get("handSize", 0)
    if length <= 0:
        errors.append(fields.invalid(f"{path}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        errors.append(fields.invalid(f"{path}.queues", queues, "must be positive"))
    elif queues > _MAX_QUEUES:
        errors.append(fields.invalid(f"{path}.queues", queues, f"must not be greater than {_MAX_QUEUES}"))
    if hand <= 0:
        errors.append(fields.invalid(f"{path}.handSize", hand, "must be positive"))
    elif hand > queues:
        why = f"should not be greater than queues ({queues})"
        errors.append(fields.invalid(f"{path}.handSize", hand, why))
    elif math.ceil(math.log2(queues) * hand) > _HASH_BITS:
        why = (
            f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than "
            f"{_HASH_BITS}"
        )
        errors.append(fields.invalid(f"{path}.handSize", hand, why))
    return errors


_shares = field("nominalConcurrencyShares", at_least(0, "must be a non-negative integer"))
_lendable = field("lendablePercent", at_least(0, _PERCENT), at_most(100, _PERCENT))
_EXEMPT = struct(_shares, _lendable)
_LIMITED = struct(
    _shares,
    field("limitResponse", _validate_response),
    _lendable,
    field("borrowingLimitPercent", at_least(0, "if specified, must be a non-negative integer")),
)


strategy = PriorityLevelConfigurationStrategy()
