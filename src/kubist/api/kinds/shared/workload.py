"""Rules of the kinds with a pod template: the base strategy, and the validation of selector, template and counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from kubist.api.kinds.core.podspec import (
    drop_disabled_template_fields,
    template_warnings,
    validate_pod_template,
)
from kubist.api.kinds.shared.values import int_or_percent_value, validate_int_or_percent
from kubist.api.resources.strategy import Errors, Strategy
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import names, status
from kubist.model.meta.fields import forbidden, invalid, not_supported, required
from kubist.model.meta.labels import is_empty, selector_matches, validate_selector
from kubist.model.meta.numerals import parse_int64
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import raise_generation

if TYPE_CHECKING:
    from kubist.api.resources.context import Context


class Workload(Strategy):
    """Kind with a pod template. Only `/status` changes its status."""

    reset_fields: tuple[str, ...] = ("status",)
    generation_fields: tuple[str, ...] = ("spec",)
    first_status: ClassVar[Object | None] = {}
    template = "spec.template"
    """Dotted path of the pod template."""
    names_pods = False
    """Whether a new object gets a warning if its name is not a DNS label."""
    annotations_count = False
    """Whether a change of annotations also increments the generation, because the controller copies them."""
    always_scaled = False
    """Whether a bookmark also has spec.replicas, as 0."""

    def complete_bookmark(self, obj: Object) -> None:
        if self.always_scaled:
            obj["spec"]["replicas"] = 0

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        drop_disabled_template_fields(self.template_of(new), self.template_of(old))
        if self.annotations_count and old is not None and self.raises_generation(new, old):
            raise_generation(new, old)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        if old is not None and not self.raises_generation(new, old):
            return []
        warnings = self.template_warnings(new)
        return name_warnings(new) + warnings if self.names_pods and old is None else warnings

    def template_warnings(self, obj: Object) -> list[str]:
        return template_warnings(self.template_of(obj), self.template)

    def template_of(self, obj: Object | None) -> Object | None:
        """Pod template of an object."""
        for field in self.template.split("."):
            if obj is None:
                break
            obj = obj.get(field)
        return obj

    def raises_generation(self, new: Object, old: Object) -> bool:
        if any(new.get(field) != old.get(field) for field in self.generation_fields):
            return True
        annotations, before = new["metadata"].get("annotations"), old["metadata"].get("annotations")
        return self.annotations_count and annotations != before


def validate_template(ctx: Context, template: Object, path: str, old: Object | None = None) -> Errors:
    """Errors of a pod template. `old` is the stored template."""
    return validate_pod_template(template, path, old, allow_privileged=ctx.config.allow_privileged)


def template_labels(template: dict[str, Any]) -> dict[str, str]:
    labels: dict[str, str] = (template.get("metadata") or {}).get("labels") or {}
    return labels


def shown_labels(template: dict[str, Any]) -> dict[str, str] | None:
    """Labels of a template in error messages: None if absent, `{}` if sent empty."""
    labels = (template.get("metadata") or {}).get("labels")
    return labels if labels is None else dict(sorted(labels.items()))


def name_warnings(obj: Object) -> list[str]:
    """Warns about a valid name that is not a DNS label, because names and hostnames of pods derive from it."""
    messages = names.dns_label(obj["metadata"].get("name", ""))
    if not messages:
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a "
        f"DNS label is recommended: [{' '.join(messages)}]"
    ]


def validate_replica_template(ctx: Context, spec: Object, old: Object | None) -> Errors:
    """Validates selector and template of a ReplicaSet or Deployment. `old` is the stored spec."""
    errors, is_malformed = validate_own_selector(spec, "deployment")
    if is_malformed:
        return [*errors, invalid("spec.selector", spec["selector"], "invalid label selector")]
    errors += validate_selected_labels(spec)
    template = spec["template"]
    errors += validate_template(ctx, template, "spec.template", old["template"] if old else None)
    return errors + validate_runs_forever(template, "ReplicaSet", "spec.template")


def validate_own_selector(spec: Object, kind: str) -> tuple[Errors, bool]:
    """Validates that the selector is present and not empty. Also returns whether it is malformed. `kind` is the
    workload's name in the message."""
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")], False
    errors = validate_selector(selector, "spec.selector")
    is_malformed = bool(errors)
    if is_empty(selector):
        errors.append(invalid("spec.selector", selector, f"empty selector is invalid for {kind}"))
    return errors, is_malformed


def validate_selected_labels(spec: Object) -> Errors:
    """Validates that the selector matches the labels of the pod template."""
    if selector_matches(spec.get("selector"), template_labels(spec["template"])):
        return []
    why = "`selector` does not match template `labels`"
    return [invalid("spec.template.metadata.labels", shown_labels(spec["template"]), why)]


def validate_runs_forever(template: Object, kind: str, path: str) -> Errors:
    """Rejects a restartPolicy other than Always, and activeDeadlineSeconds."""
    spec = template["spec"]
    errors = []
    policy = spec.get("restartPolicy", "")
    if policy != "Always":
        errors.append(not_supported(f"{path}.spec.restartPolicy", policy, ["Always"]))
    if "activeDeadlineSeconds" in spec:
        why = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden(f"{path}.spec.activeDeadlineSeconds", why))
    return errors


def validate_counts(status: Object, parts: Iterable[str], ready: str = "readyReplicas") -> Errors:
    """Validates counts: no part exceeds status.replicas, and availableReplicas does not exceed readyReplicas."""
    replicas = status.get("replicas", 0)
    errors = [
        invalid(f"status.{part}", status.get(part, 0), "cannot be greater than status.replicas")
        for part in parts
        if status.get(part, 0) > replicas
    ]
    available = status.get("availableReplicas", 0)
    if available > status.get("readyReplicas", 0):
        errors.append(invalid("status.availableReplicas", available, f"cannot be greater than {ready}"))
    return errors


def validate_collision_count(new: Object, old: Object) -> Errors:
    """Validates that collisionCount does not decrease. An absent count is zero."""
    count = (new.get("status") or {}).get("collisionCount")
    before = (old.get("status") or {}).get("collisionCount")
    if before is None or (count is not None and count >= before):
        return []
    return [invalid("status.collisionCount", count or 0, "cannot be decremented")]


def validate_rolling_bounds(rolling_update: Object, path: str) -> tuple[bool, bool, Errors]:
    """Whether maxUnavailable and maxSurge are not zero, and errors unless both are non-negative integers or
    percentages."""
    unavailable, surge = rolling_update.get("maxUnavailable", 0), rolling_update.get("maxSurge", 0)
    errors = validate_int_or_percent(unavailable, f"{path}.maxUnavailable")
    errors += validate_int_or_percent(surge, f"{path}.maxSurge")
    return int_or_percent_value(unavailable) != 0, int_or_percent_value(surge) != 0, errors


def shown_strategy(strategy: Object, **rolling_update: int | None) -> dict[str, Any]:
    """Strategy in the form of Go error messages: Go field names. `rolling_update` maps rollingUpdate's fields to
    their zero values."""
    spec = strategy.get("rollingUpdate")
    form = None
    if spec is not None:
        form = {name[0].upper() + name[1:]: spec.get(name, zero) for name, zero in rolling_update.items()}
    return {"Type": strategy.get("type", ""), "RollingUpdate": form}


def integer_annotation(obj: Object, name: str, what: str = "") -> int | None:
    """Integer value of the annotation; None if absent. Other text is a 400; `what` prefixes the parse error."""
    text = (obj["metadata"].get("annotations") or {}).get(name)
    if text is None:
        return None
    value = parse_int64(text)
    if value is None:
        kind = obj["kind"]
        raise status.bad_request(
            f'{kind} in version "v1" cannot be handled as a {kind}: {what}'
            f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax"
        )
    return value


def set_integer_annotation(obj: Object, name: str, value: int) -> None:
    obj["metadata"].setdefault("annotations", {})[name] = str(value)


def drop_annotation(obj: Object, name: str) -> None:
    annotations = obj["metadata"].get("annotations")
    if annotations and name in annotations:
        del annotations[name]
        if not annotations:
            del obj["metadata"]["annotations"]
