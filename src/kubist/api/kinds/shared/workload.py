"""Base strategy of the kinds with a pod template."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from kubist.api.kinds.core.podspec import (
    drop_disabled_template_fields,
    template_warnings,
    validate_pod_template,
)
from kubist.api.resources.strategy import Errors, Strategy, at
from kubist.model.meta import names
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context


class Workload(Strategy):
    """Kind with a pod template. Only `/status` changes its status."""

    reset_fields: tuple[str, ...] = ("status",)
    generation_fields: tuple[str, ...] = ("spec",)
    first_status: ClassVar[Object | None] = {}
    template = "spec.template"
    """Dotted path of the pod template."""

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        before = at(old, self.template) if old is not None else None
        drop_disabled_template_fields(at(new, self.template), before)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        if old is not None and not self.raises_generation(new, old):
            return ()
        return template_warnings(at(new, self.template), self.template)

    def raises_generation(self, new: Object, old: Object) -> bool:
        return any(at(new, field) != at(old, field) for field in self.generation_fields)


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
    """Warns of a valid name that is not a DNS label, because names and hostnames of pods derive from it."""
    messages = names.dns_label(obj["metadata"].get("name", ""))
    if not messages:
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a "
        f"DNS label is recommended: [{' '.join(messages)}]"
    ]
