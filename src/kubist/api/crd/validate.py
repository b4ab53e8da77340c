"""Validates CRDs. Errors name the fields of kube-apiserver's internal form: a field that all versions share is reported
at the top of the spec. With only one version, this applies to all fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubist.api.crd import definition, naming, schema_rules, structural
from kubist.api.crd.defaults import validate_defaults
from kubist.api.crd.rules.cost import SCHEMA_LIMIT, SchemaCost, excess
from kubist.api.crd.schema_rules import Tolerance, Where
from kubist.api.crd.schemas import node_count, schemas, walk
from kubist.api.crd.version_rules import (
    deprecation_problems,
    validate_columns,
    validate_conversion,
    validate_root,
    validate_selectable,
    validate_subresources,
)
from kubist.api.resources.strategy import Errors
from kubist.base.offload import leave_loop
from kubist.model.meta import fields, names
from kubist.model.meta.object import Object
from kubist.model.schema.internals import internal_form

Props = dict[str, Any]

LENGTHY_NODES = 2_000
"""CRDs with more schema nodes are validated in a worker thread instead of on the event loop."""


def validate_definition(new: Object, old: Object | None) -> Errors:
    """Errors of a CRD, or of an update if `old` is given."""
    spec = new["spec"]
    if node_count(spec) > LENGTHY_NODES:
        leave_loop()
    errors = _Spec(new, old).validate()
    if old is not None:
        before = old["spec"]
        if definition.established(old):
            errors += _immutable(spec["scope"], before["scope"], "spec.scope")
            errors += _immutable(spec["names"].get("kind"), before["names"].get("kind"), "spec.names.kind")
        errors += _immutable(spec["group"], before["group"], "spec.group")
        errors += _immutable(spec["names"].get("plural"), before["names"].get("plural"), "spec.names.plural")
    status = new["status"]
    errors += validate_names(status.get("acceptedNames") or {}, "status.acceptedNames")
    errors += _stored_versions(status.get("storedVersions") or [], spec.get("versions") or [])
    errors += _approval(new, old)
    if spec.get("preserveUnknownFields") and not (old or {"spec": {}})["spec"].get("preserveUnknownFields"):
        why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        errors.append(fields.invalid("spec.preserveUnknownFields", True, why))
    return errors


def _immutable(new: Any, old: Any, path: str) -> Errors:
    return [] if new == old else [fields.invalid(path, new, "field is immutable")]


def _stored_versions(stored: list[str], versions: list[Object]) -> Errors:
    path = "status.storedVersions"
    if not stored:
        return [fields.invalid(path, None, "must have at least one stored version")]
    errors = []
    left = {name: index for index, name in enumerate(stored)}
    for version in versions:
        if version.get("storage") and version["name"] not in left:
            errors.append(fields.invalid(path, stored, f"must have the storage version {version['name']}"))
        left.pop(version["name"], None)
    for name, index in left.items():
        why = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
            "status.storedVersions"
        )
        errors.append(fields.invalid(f"{path}[{index}]", name, why))
    return errors


def _approval(new: Object, old: Object | None) -> Errors:
    if not naming.protected(new["spec"].get("group", "")):
        return []
    state, why = naming.approval(new)
    if (old is not None and naming.approval(old)[0] == state) or state in ("approved", "bypassed"):
        return []
    path = f"metadata.annotations[{definition.APPROVED_ANNOTATION}]"
    if state == "missing":
        return [fields.required(path, why)]
    value = (new["metadata"].get("annotations") or {}).get(definition.APPROVED_ANNOTATION, "")
    return [fields.invalid(path, value, why)]


def validate_names(crd_names: Object, path: str) -> Errors:
    errors: Errors = []

    def check(field: str, value: str, *, mixed: bool = False) -> None:
        wrong = names.dns_1035_label(value.lower() if mixed else value)
        if value and wrong:
            prefix = "may have mixed case, but should otherwise match: " if mixed else ""
            errors.append(fields.invalid(f"{path}.{field}", value, prefix + ",".join(wrong)))

    check("plural", crd_names.get("plural") or "")
    check("singular", crd_names.get("singular") or "")
    check("kind", crd_names.get("kind") or "", mixed=True)
    check("listKind", crd_names.get("listKind") or "", mixed=True)
    for index, name in enumerate(crd_names.get("shortNames") or ()):
        errors += [
            fields.invalid(f"{path}.shortNames[{index}]", name, ",".join(wrong))
            for wrong in [names.dns_1035_label(name)]
            if wrong
        ]
    if crd_names.get("kind") and crd_names.get("kind") == crd_names.get("listKind"):
        why = "kind and listKind may not be the same"
        errors.append(fields.invalid(f"{path}.listKind", crd_names["listKind"], why))
    for index, name in enumerate(crd_names.get("categories") or ()):
        errors += [
            fields.invalid(f"{path}.categories[{index}]", name, ",".join(wrong))
            for wrong in [names.dns_1035_label(name)]
            if wrong
        ]
    return errors


def _common(versions: list[Object], field: str) -> bool:
    """Whether all versions have the same value for a field. kube-apiserver's internal form then holds it at the top."""
    return bool(versions) and all(version.get(field) == versions[0].get(field) for version in versions)


def _internal(versions: list[Object] | None) -> Any:
    """Versions as messages show them: in kube-apiserver's internal form, without the fields that all versions share."""
    common = [name for name in _AT_THE_TOP if _common(versions or [], name)]
    kept = [
        {name: value for name, value in version.items() if name not in common} for version in versions or ()
    ]
    return internal_form(
        "[]apiextensions.CustomResourceDefinitionVersion", None if versions is None else kept
    )


_AT_THE_TOP = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


class _Spec:
    """Validates the spec of a CRD."""

    def __init__(self, crd: Object, old: Object | None) -> None:
        self.spec: Object = crd["spec"]
        self.old = old
        self.versions: list[Object] = self.spec.get("versions") or []
        self.old_spec: Object = old["spec"] if old is not None else {}
        self.tolerance = _tolerance(self.old_spec) if old is not None else Tolerance()
        self.pruned_defaults = old is None or not any(map(_unpruned, schemas(self.old_spec)))

    def validate(self) -> Errors:
        spec = self.spec
        errors = self._group()
        scope = spec.get("scope") or ""
        if not scope:
            errors.append(fields.required("spec.scope"))
        elif scope not in ("Cluster", "Namespaced"):
            errors.append(fields.not_supported("spec.scope", scope, ("Cluster", "Namespaced")))
        errors += self._missing_schemas()
        if spec.get("preserveUnknownFields") and any(map(_has_defaults, schemas(spec))):
            why = "must be false in order to use defaults in the schema"
            errors.append(fields.invalid("spec.preserveUnknownFields", True, why))
        errors += self._versions()
        named = spec.get("names") or {}
        errors += [
            fields.required(f"spec.names.{name}")
            for name in ("plural", "singular", "kind", "listKind")
            if not named.get(name)
        ]
        errors += validate_names(named, "spec.names")
        errors += self._shared()
        conversion = spec.get("conversion")
        if conversion is not None:
            if conversion.get("strategy") != "None" and spec.get("preserveUnknownFields"):
                why = "must be None if spec.preserveUnknownFields is true"
                errors.append(fields.invalid("spec.conversion.strategy", conversion.get("strategy", ""), why))
            errors += validate_conversion(conversion, self.old)
        return errors

    def _group(self) -> Errors:
        group = self.spec.get("group") or ""
        if not group:
            return [fields.required("spec.group")]
        if wrong := names.dns_subdomain(group):
            return [fields.invalid("spec.group", group, ",".join(wrong))]
        if "." not in group:
            return [fields.invalid("spec.group", group, "should be a domain with at least one dot")]
        return []

    def _missing_schemas(self) -> Errors:
        if self.old is not None and any(
            definition.schema_of(v) is None for v in self.old_spec.get("versions") or ()
        ):
            return []
        return [
            fields.required(f"spec.versions[{index}].schema.openAPIV3Schema")
            for index, version in enumerate(self.versions)
            if definition.schema_of(version) is None
        ]

    def _versions(self) -> Errors:
        errors: Errors = []
        apart = {field: not _common(self.versions, field) for field in _PER_VERSION}
        for index, version in enumerate(self.versions):
            path = f"spec.versions[{index}]"
            name = version.get("name") or ""
            if wrong := names.dns_1035_label(name):
                errors.append(fields.invalid(f"{path}.name", name, ",".join(wrong)))
            errors += [
                fields.invalid(f"{path}.deprecationWarning", version.get("deprecationWarning"), why)
                for why in deprecation_problems(version)
            ]
            if apart["schema"]:
                errors += self._schema(version, f"{path}.schema", self._has_status(version))
            if apart["subresources"]:
                errors += validate_subresources(version, f"{path}.subresources")
            if apart["additionalPrinterColumns"]:
                errors += validate_columns(version, f"{path}.additionalPrinterColumns")
            if apart["selectableFields"]:
                errors += validate_selectable(version, f"{path}.selectableFields", self._before(version))
        names_ = [version.get("name") for version in self.versions]
        if len(set(names_)) != len(names_):
            errors.append(
                fields.invalid(
                    "spec.versions", _internal(self.spec.get("versions")), "must contain unique version names"
                )
            )
        if sum(bool(version.get("storage")) for version in self.versions) != 1:
            why = "must have exactly one version marked as storage version"
            errors.append(fields.invalid("spec.versions", _internal(self.spec.get("versions")), why))
        if self.versions and (wrong := names.dns_1035_label(self.versions[0].get("name") or "")):
            errors.append(fields.invalid("spec.version", self.versions[0].get("name", ""), ",".join(wrong)))
        return errors

    def _has_status(self, version: Object) -> bool:
        return "status" in definition.subresources_of(version)

    def _shared(self) -> Errors:
        """Errors of the fields that all versions share."""
        errors: Errors = []
        if not self.versions:
            return errors
        first = self.versions[0]
        if _common(self.versions, "schema"):
            any_status = any(map(self._has_status, self.versions))
            errors += self._schema(first, "spec.validation", any_status)
        if _common(self.versions, "subresources"):
            errors += validate_subresources(first, "spec.subresources")
        if _common(self.versions, "additionalPrinterColumns"):
            errors += validate_columns(first, "spec.additionalPrinterColumns")
        if _common(self.versions, "selectableFields"):
            errors += validate_selectable(first, "spec.selectableFields", self._before(first))
        return errors

    def _schema(self, version: Object, path: str, status: bool) -> Errors:
        """Errors of the schema of a version: root, structure, defaults, keywords, CEL rules."""
        props = definition.schema_of(version)
        if props is None:
            return []
        path = f"{path}.openAPIV3Schema"
        errors = validate_root(props, path, status)
        init = structural.unsupported(props)
        cost: SchemaCost | None = None
        if self._structural_required():
            if not init:
                problems = structural.validate_structural(props, path)
                problems = problems or validate_defaults(props, path, pruned=self.pruned_defaults)
                errors += problems
                cost = SchemaCost(props) if not problems else None
        else:
            init = ""
        tolerance = self._unchanged(version)
        where = Where()
        errors += schema_rules.validate_schema(props, path, where, tolerance, cost, root=True).all()
        if not errors and init:
            errors.append(fields.invalid(path, "", init))
        if cost is not None and cost.total.total > SCHEMA_LIMIT:
            contributed = (
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            )
            errors += [fields.forbidden(where_, contributed) for where_, _ in cost.total.most]
            what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
            errors.append(fields.forbidden(path, excess(what, cost.total.total, SCHEMA_LIMIT)))
        return errors

    def _structural_required(self) -> bool:
        if not self.spec.get("preserveUnknownFields"):
            return True
        return self.old is None or not any(map(_not_structural, schemas(self.old_spec)))

    def _before(self, version: Object) -> Object:
        """The version before the update; empty if it is new."""
        old_versions = self.old_spec.get("versions") or ()
        return next((entry for entry in old_versions if entry["name"] == version.get("name")), {})

    def _unchanged(self, version: Object) -> Tolerance:
        """Tolerance for a version. An unchanged schema is not rejected for the cost of its rules."""
        before = self._before(version)
        if not before or definition.schema_of(before) != definition.schema_of(version):
            return self.tolerance
        tolerance = self.tolerance
        return Tolerance(tolerance.valid_types, tolerance.atomic_sets, tolerance.map_keys, cost=False)


_PER_VERSION = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def _any(test: Callable[[Props], bool]) -> Callable[[Props], bool]:
    return lambda props: any(test(inner) for inner in walk(props))


_has_defaults = _any(lambda props: props.get("default") is not None)


def _unpruned(props: Props) -> bool:
    return _has_defaults(props) and any(
        error.body.endswith("must not have unknown fields")
        for error in validate_defaults(props, "", pruned=True)
    )


def _not_structural(props: Props) -> bool:
    return bool(structural.unsupported(props) or structural.validate_structural(props, ""))


def _tolerance(old: Object) -> Tolerance:
    """Tolerance that skips the checks that the old CRD violates."""
    nodes = [inner for props in schemas(old) for inner in walk(props)]
    types = schema_rules.TYPES
    return Tolerance(
        valid_types=not any(inner.get("type") and inner["type"] not in types for inner in nodes),
        atomic_sets=not any(schema_rules.atomic_set_errors(inner, "") for inner in nodes),
        map_keys=not any(schema_rules.map_key_errors(inner, "") for inner in nodes),
    )
