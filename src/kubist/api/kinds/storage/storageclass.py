"""StorageClass: provisioning of volumes. Provisioner, parameters, reclaimPolicy and volumeBindingMode are
immutable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kubist.api.kinds.shared.node_labels import DEPRECATED
from kubist.api.kinds.shared.rules import field, not_null, one_of, optional, struct
from kubist.api.kinds.shared.update import immutable
from kubist.api.kinds.storage.common import validate_parameters, validate_provisioner
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import fields, objectmeta
from kubist.model.meta.labels import validate_label_name
from kubist.model.meta.object import Object

_MOST_DUPLICATES = 64
"""Maximum number of duplicate errors for one term. Each earlier identical term causes one error."""
_IMMUTABLE = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
_MODES = struct(
    field("reclaimPolicy", optional, one_of("Delete", "Retain")),
    field("volumeBindingMode", not_null, one_of("Immediate", "WaitForFirstConsumer")),
)


class StorageClassStrategy(Strategy):
    returns_deleted = True
    metadata_rules = ("object",)

    def default(self, obj: Object) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors = _validate(new)
        if old is not None:
            errors += objectmeta.validate_update(new["metadata"], old["metadata"])
            for name in _IMMUTABLE:
                type = "string" if name == "provisioner" else "nullable"
                errors += immutable(new.get(name), old.get(name), name, type)
        return errors

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return [
            f"allowedTopologies[{i}].matchLabelExpressions[{j}].key: {DEPRECATED[expression['key']]}"
            for i, term in enumerate(new.get("allowedTopologies") or ())
            for j, expression in enumerate(term.get("matchLabelExpressions") or ())
            if expression.get("key") in DEPRECATED
        ]


def _validate(obj: Object) -> Errors:
    errors = validate_provisioner(obj.get("provisioner", ""), "provisioner")
    errors += validate_parameters(obj.get("parameters"), "parameters", allow_empty=True)
    errors += _MODES(obj, "")
    return errors + _validate_topologies(obj.get("allowedTopologies") or [])


def _validate_topologies(terms: list[Object]) -> Errors:
    errors: Errors = []
    seen: Counter[frozenset[tuple[str, frozenset[str]]]] = Counter({frozenset(): len(terms)})
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        values_by_key: dict[str, frozenset[str]] = {}
        for j, requirement in enumerate(term.get("matchLabelExpressions") or ()):
            key = requirement.get("key", "")
            values = requirement.get("values") or []
            if not values:
                errors.append(fields.required(f"{path}[{j}].values"))
            known: set[str] = set()
            for k, value in enumerate(values):
                if value in known:
                    errors.append(fields.duplicate(f"{path}[{j}].values[{k}]", value))
                known.add(value)
            errors += validate_label_name(key, f"{path}[{j}].key")
            if key in values_by_key:
                errors.append(fields.duplicate(f"{path}[{j}].key", key))
            values_by_key[key] = frozenset(known)
        topology = frozenset(values_by_key.items())
        errors += [fields.duplicate(path, "")] * min(seen[topology], _MOST_DUPLICATES)
        seen[topology] += 1
    return errors


strategy = StorageClassStrategy()
