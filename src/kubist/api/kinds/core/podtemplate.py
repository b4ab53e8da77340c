"""PodTemplate: a stored template, for controllers that look it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.kinds.core.podspec import default_pod_template
from kubist.api.kinds.shared.workload import Workload, validate_template
from kubist.api.resources.strategy import Errors
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context


class PodTemplateStrategy(Workload):
    """Workload without spec and status, only with a template."""

    returns_deleted = True
    generation_fields = ("template",)
    template = "template"
    reset_fields = ()
    first_status = None

    def default(self, obj: Object) -> None:
        default_pod_template(obj.setdefault("template", {}))

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        before = old.get("template") if old is not None else None
        return validate_template(ctx, new["template"], "template", before)


strategy = PodTemplateStrategy()
