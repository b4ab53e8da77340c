"""What a CustomResourceDefinition may say. Causes name fields as the reference's internal form has them: what all
versions have in common (of one version, all) is found at the top of the spec."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubist.crd import definition, fieldpath, naming, schemarules, structural
from kubist.crd.defaults import validate_defaults
from kubist.crd.rules.cost import SCHEMA_LIMIT, SchemaCost, excess
from kubist.crd.schemarules import Tolerance, Where
from kubist.crd.validation.formats import recognized
from kubist.crd.versionrules import (
    deprecation_problems,
    validate_columns,
    validate_root,
    validate_subresources,
)
from kubist.crd.webhook import REVIEW_VERSIONS, valid_ca_bundle
from kubist.kinds.shared.webhookclient import validate_service, validate_url
from kubist.kinds.strategy import Errors, Object
from kubist.meta import fields, names

Props = dict[str, Any]

MAX_SELECTABLE_FIELDS = 8


def validate_definition(new: Object, old: Object | None) -> Errors:
    """All that is wrong with a definition; with `old`, of one that was already there."""
    spec = new["spec"]
    errors = _name(new) if old is None else []
    errors += _Spec(new, old).validate()
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


def _name(crd: Object) -> Errors:
    name = crd["metadata"].get("name", "")
    wanted = f"{crd['spec']['names'].get('plural', '')}.{crd['spec'].get('group', '')}"
    if not name or name == wanted:
        return []
    return [fields.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')]


def _immutable(new: Any, old: Any, path: str) -> Errors:
    return [] if new == old else [fields.invalid(path, new, "field is immutable")]


def _stored_versions(stored: list[str], versions: list[Object]) -> Errors:
    path = "status.storedVersions"
    if not stored:
        return [fields.invalid(path, stored, "must have at least one stored version")]
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
    given = (new["metadata"].get("annotations") or {}).get(definition.APPROVED_ANNOTATION, "")
    return [fields.invalid(path, given, why)]


def validate_names(given: Object, path: str) -> Errors:
    errors: Errors = []

    def check(field: str, value: str, *, mixed: bool = False) -> None:
        wrong = names.dns_1035_label(value.lower() if mixed else value)
        if value and wrong:
            prefix = "may have mixed case, but should otherwise match: " if mixed else ""
            errors.append(fields.invalid(f"{path}.{field}", value, prefix + ",".join(wrong)))

    check("plural", given.get("plural") or "")
    check("singular", given.get("singular") or "")
    check("kind", given.get("kind") or "", mixed=True)
    check("listKind", given.get("listKind") or "", mixed=True)
    for index, name in enumerate(given.get("shortNames") or ()):
        errors += [
            fields.invalid(f"{path}.shortNames[{index}]", name, ",".join(wrong))
            for wrong in [names.dns_1035_label(name)]
            if wrong
        ]
    if given.get("kind") and given.get("kind") == given.get("listKind"):
        why = "kind and listKind may not be the same"
        errors.append(fields.invalid(f"{path}.listKind", given["listKind"], why))
    for index, name in enumerate(given.get("categories") or ()):
        errors += [
            fields.invalid(f"{path}.categories[{index}]", name, ",".join(wrong))
            for wrong in [names.dns_1035_label(name)]
            if wrong
        ]
    return errors


def _common(versions: list[Object], field: str) -> bool:
    """Whether all versions say the same about something: then the reference has it at the top."""
    return bool(versions) and all(version.get(field) == versions[0].get(field) for version in versions)


class _Spec:
    """The spec of a definition under validation."""

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
            errors += self._conversion(conversion)
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
                errors += self._selectable(version, f"{path}.selectableFields")
        names_ = [version.get("name") for version in self.versions]
        if len(set(names_)) != len(names_):
            errors.append(fields.invalid("spec.versions", self.versions, "must contain unique version names"))
        if sum(bool(version.get("storage")) for version in self.versions) != 1:
            why = "must have exactly one version marked as storage version"
            errors.append(fields.invalid("spec.versions", self.versions, why))
        if self.versions and (wrong := names.dns_1035_label(self.versions[0].get("name") or "")):
            errors.append(fields.invalid("spec.version", self.versions[0].get("name", ""), ",".join(wrong)))
        return errors

    def _has_status(self, version: Object) -> bool:
        return "status" in definition.subresources_of(version)

    def _shared(self) -> Errors:
        """What all versions have in common."""
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
            errors += self._selectable(first, "spec.selectableFields")
        return errors

    def _schema(self, version: Object, path: str, status: bool) -> Errors:
        """The schema of a version: its root, its structure, its defaults, its keywords, its rules."""
        props = definition.schema_of(version)
        if props is None:
            return []
        path = f"{path}.openAPIV3Schema"
        errors = validate_root(props, path, status)
        init = structural.unsupported(props)
        cost: SchemaCost | None = None
        if self._structural_required():
            if not init:
                found = structural.validate_structural(props, path)
                found = found or validate_defaults(props, path, pruned=self.pruned_defaults)
                errors += found
                cost = SchemaCost(props) if not found else None
        else:
            init = ""
        tolerance = self._unchanged(version)
        where = Where()
        errors += schemarules.validate_schema(props, path, where, tolerance, cost, root=True).all()
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

    def _unchanged(self, version: Object) -> Tolerance:
        """A schema that did not change is not refused for what its rules cost."""
        before = next(
            (v for v in self.old_spec.get("versions") or () if v["name"] == version.get("name")), None
        )
        if before is None or definition.schema_of(before) != definition.schema_of(version):
            return self.tolerance
        held = self.tolerance
        return Tolerance(held.valid_types, held.atomic_sets, held.map_keys, held.rules, cost=False)

    def _selectable(self, version: Object, path: str) -> Errors:
        chosen = version.get("selectableFields") or ()
        props = definition.schema_of(version)
        if not chosen:
            return []
        if props is None:
            return [fields.invalid(path, "", "may only be set when a schema is included")]
        errors: Errors = []
        seen: set[str] = set()
        for index, field in enumerate(chosen):
            where, text = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
            if not text:
                errors.append(fields.required(where))
                continue
            try:
                spelled, found = fieldpath.resolve(text, props, arrays=False)
            except fieldpath.BadPath as error:
                errors.append(fields.invalid(where, text, f"is an invalid path: {error}"))
                continue
            if spelled.partition(".")[0] == "metadata":
                errors.append(fields.invalid(where, text, "must not point to fields in metadata"))
            if (found or {}).get("type") not in ("string", "boolean", "integer"):
                why = (
                    "must point to a field of type string, boolean or integer. Enum string fields and strings with "
                    "formats are allowed."
                )
                errors.append(fields.invalid(where, text, why))
            if spelled in seen:
                errors.append(fields.duplicate(where, text))
            seen.add(spelled)
        if len(seen) > MAX_SELECTABLE_FIELDS and not self._had_too_many(version):
            errors.append(fields.too_many(path, len(seen), MAX_SELECTABLE_FIELDS))
        return errors

    def _had_too_many(self, version: Object) -> bool:
        before: Object = next(
            (v for v in self.old_spec.get("versions") or () if v["name"] == version.get("name")), {}
        )
        held = before.get("selectableFields") or []
        return len(held) > MAX_SELECTABLE_FIELDS and held == version.get("selectableFields")

    def _conversion(self, conversion: Object) -> Errors:
        path = "spec.conversion"
        strategy = conversion.get("strategy") or ""
        webhook = conversion.get("webhook")
        if not strategy:
            return [fields.required(f"{path}.strategy")]
        errors: Errors = []
        if strategy not in ("None", "Webhook"):
            errors.append(fields.not_supported(f"{path}.strategy", strategy, ("None", "Webhook")))
        client = (webhook or {}).get("clientConfig")
        versions = (webhook or {}).get("conversionReviewVersions") or []
        where = f"{path}.webhookClientConfig"
        if strategy != "Webhook":
            why = "should not be set when strategy is not set to Webhook"
            if client is not None:
                errors.append(fields.forbidden(where, why))
            if versions:
                errors.append(fields.forbidden(f"{path}.conversionReviewVersions", why))
            return errors
        if client is None:
            errors.append(fields.required(where, "required when strategy is set to Webhook"))
        else:
            url, service = client.get("url"), client.get("service")
            if (url is None) == (service is None):
                errors.append(fields.required(where, "exactly one of url or service is required"))
            elif url is not None:
                errors += validate_url(url, f"{where}.url")
            else:
                errors += validate_service(service, f"{where}.service")
            bundle = client.get("caBundle")
            if bundle and not self._tolerates_ca_bundle() and not valid_ca_bundle(bundle):
                why = "unable to load root certificates: unable to parse bytes as PEM block"
                errors.append(fields.invalid(f"{where}.caBundle", bundle, why))
        return errors + self._review_versions(versions, f"{path}.conversionReviewVersions")

    def _tolerates_ca_bundle(self) -> bool:
        """A bad bundle keeps a definition from being established; only later is it refused at once."""
        if self.old is None or not definition.established(self.old):
            return True
        before = ((self.old_spec.get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
        return bool(before.get("caBundle")) and not valid_ca_bundle(before["caBundle"])

    def _review_versions(self, versions: list[str], path: str) -> Errors:
        if not versions:
            return [fields.required(path)]
        errors: Errors = []
        seen: set[str] = set()
        for index, version in enumerate(versions):
            if version in seen:
                errors.append(fields.invalid(f"{path}[{index}]", version, "duplicate version"))
                continue
            seen.add(version)
            errors += [
                fields.invalid(f"{path}[{index}]", version, why) for why in names.dns_1035_label(version)
            ]
        before = ((self.old_spec.get("conversion") or {}).get("webhook") or {}).get(
            "conversionReviewVersions"
        )
        required = not before or any(version in REVIEW_VERSIONS for version in before)
        if required and not any(version in REVIEW_VERSIONS for version in versions):
            why = f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
            errors.append(fields.invalid(path, versions, why))
        return errors


_PER_VERSION = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def schemas(spec: Object) -> list[Props]:
    found = [definition.schema_of(version) for version in spec.get("versions") or ()]
    return [props for props in found if props is not None]


def walk(props: Props) -> Iterator[Props]:
    """A schema and all schemas in it."""
    yield props
    for name in ("not", "items", "additionalProperties", "additionalItems"):
        inner = props.get(name)
        if isinstance(inner, dict):
            yield from walk(inner)
        elif isinstance(inner, list):
            for item in inner:
                yield from walk(item)
    for name in ("allOf", "anyOf", "oneOf"):
        for inner in props.get(name) or ():
            yield from walk(inner)
    for name in ("properties", "patternProperties", "definitions", "dependencies"):
        for inner in (props.get(name) or {}).values():
            if isinstance(inner, dict):
                yield from walk(inner)


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
    """What the old definition has that a new one may not have."""
    held = [inner for props in schemas(old) for inner in walk(props)]
    types = schemarules.TYPES
    rules = [rule for inner in held for rule in inner.get("x-kubernetes-validations") or ()]
    return Tolerance(
        valid_types=not any(inner.get("type") and inner["type"] not in types for inner in held),
        atomic_sets=not any(schemarules.atomic_set_errors(inner, "") for inner in held),
        map_keys=not any(schemarules.map_key_errors(inner, "") for inner in held),
        rules=frozenset(rule.get("rule", "") for rule in rules),
    )


def formats_warnings(new: Object, old: Object | None) -> list[str]:
    """Formats that mean nothing: each is told, on an update only if it is new."""
    known = set(_unrecognized(old["spec"])) if old is not None else set()
    return [f'unrecognized format "{name}"' for name in _unrecognized(new["spec"]) if name not in known]


def _unrecognized(spec: Object) -> list[str]:
    return [
        inner["format"]
        for props in schemas(spec)
        for inner in walk(props)
        if inner.get("format") and not recognized(inner.get("type") or "", inner["format"])
    ]
