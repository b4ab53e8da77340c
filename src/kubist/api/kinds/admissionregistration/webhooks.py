"""Validation shared by the two webhook configurations. Errors that the stored configuration already has are
tolerated."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.api.kinds.admissionregistration.matching import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    default_rules,
    one_of,
    reserved_name_warnings,
    validate_match_conditions,
    validate_rule,
)
from kubist.api.kinds.shared.values import repeats
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.api.webhooks.client_config import validate_service, validate_url
from kubist.model.meta import fields, names
from kubist.model.meta.labels import validate_selector
from kubist.model.meta.object import Object

_NO_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_SIDE_EFFECTS = ("None", "NoneOnDryRun", "Some", "Unknown")
_REVIEW_VERSIONS = ("v1", "v1beta1")


class WebhookConfigurationStrategy(Strategy):
    generation_fields = ("webhooks",)
    empty_is_change = True
    unconditional_update = False
    qualified_finalizers = False
    metadata_rules = ("object",)

    def default(self, obj: Object) -> None:
        for hook in obj.get("webhooks") or ():
            hook.setdefault("failurePolicy", "Fail")
            hook.setdefault("matchPolicy", "Equivalent")
            hook.setdefault("namespaceSelector", {})
            hook.setdefault("objectSelector", {})
            hook.setdefault("timeoutSeconds", 10)
            default_rules(hook.get("rules"))
            service = (hook.get("clientConfig") or {}).get("service")
            if service is not None:
                service.setdefault("port", 443)

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        before = (old.get("webhooks") or []) if old is not None else None
        return _validate(new.get("webhooks") or [], before)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return reserved_name_warnings(new)


def _validate(hooks: list[Object], old: list[Object] | None) -> Errors:
    """Validates webhooks. A rule that the old configuration already violates is not enforced on the new one."""
    before = old or []
    side_effects: tuple[str, ...] = _SIDE_EFFECTS
    if all(hook.get("sideEffects") in _NO_SIDE_EFFECTS for hook in before):
        side_effects = _NO_SIDE_EFFECTS
    known_version = all(
        not hook.get("admissionReviewVersions") or _has_known_version(hook) for hook in before
    )
    unique = len({hook.get("name") for hook in before}) == len(before)
    lax_selectors = any(
        validate_selector(hook.get(name), "")
        for hook in before
        for name in ("namespaceSelector", "objectSelector")
    )
    new_conditions = old is None or (
        [hook.get("matchConditions") for hook in hooks] != [hook.get("matchConditions") for hook in old]
    )
    errors: Errors = []
    seen = set()
    for index, hook in enumerate(hooks):
        path = f"webhooks[{index}]"
        errors += _validate_hook(hook, path, side_effects, lax_selectors)
        if new_conditions:
            errors += validate_match_conditions(hook.get("matchConditions"), f"{path}.matchConditions")
        errors += _validate_review_versions(hook, f"{path}.admissionReviewVersions", known_version)
        name = hook.get("name", "")
        if unique and name in seen:
            errors.append(fields.duplicate(f"{path}.name", name))
        if name:
            seen.add(name)
    return errors


def _validate_hook(hook: Object, path: str, side_effects: tuple[str, ...], lax_selectors: bool) -> Errors:
    errors = _validate_full_name(hook.get("name", ""), f"{path}.name")
    for index, rule in enumerate(hook.get("rules") or ()):
        errors += validate_rule(rule, f"{path}.rules[{index}]")
    errors += one_of(hook.get("failurePolicy"), f"{path}.failurePolicy", FAILURE_POLICIES)
    errors += one_of(hook.get("matchPolicy"), f"{path}.matchPolicy", MATCH_POLICIES)
    if hook.get("sideEffects") is None:
        why = f"must specify one of {', '.join(side_effects)}"
        errors.append(fields.required(f"{path}.sideEffects", why))
    errors += one_of(hook.get("sideEffects"), f"{path}.sideEffects", side_effects)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        why = "the timeout value must be between 1 and 30 seconds"
        errors.append(fields.invalid(f"{path}.timeoutSeconds", seconds, why))
    for name in ("namespaceSelector", "objectSelector"):
        errors += validate_selector(hook.get(name), f"{path}.{name}", allow_invalid_values=lax_selectors)
    errors += one_of(hook.get("reinvocationPolicy"), f"{path}.reinvocationPolicy", REINVOCATION_POLICIES)
    return errors + _validate_client(hook.get("clientConfig") or {}, f"{path}.clientConfig")


def _validate_full_name(name: str, path: str) -> Errors:
    if not name:
        return [fields.required(path)]
    if messages := names.dns_subdomain(name):
        return [fields.invalid(path, name, ",".join(messages))]
    if name.count(".") < 2:
        why = "should be a domain with at least three segments separated by dots"
        return [fields.invalid(path, name, why)]
    return []


def _validate_client(client: Object, path: str) -> Errors:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [fields.required(path, "exactly one of url or service is required")]
    if service is not None:
        # kube-apiserver swaps the two fields: the error for a missing name says that the namespace is missing.
        swapped = {**service, "name": service.get("namespace"), "namespace": service.get("name")}
        return validate_service(swapped, f"{path}.service")
    return validate_url(url or "", f"{path}.url")


def _has_known_version(hook: Object) -> bool:
    return any(version in _REVIEW_VERSIONS for version in hook.get("admissionReviewVersions") or ())


def _validate_review_versions(hook: Object, path: str, known_version: bool) -> Errors:
    versions = hook.get("admissionReviewVersions") or []
    if not versions:
        return [fields.required(path, f"must specify one of {', '.join(_REVIEW_VERSIONS)}")]
    errors: Errors = []
    repeated = frozenset(repeats(versions))
    for index, version in enumerate(versions):
        if index in repeated:
            errors.append(fields.invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        errors += [fields.invalid(f"{path}[{index}]", version, m) for m in names.dns_1035_label(version)]
    if known_version and not _has_known_version(hook):
        why = f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"
        errors.append(fields.invalid(path, versions, why))
    return errors
