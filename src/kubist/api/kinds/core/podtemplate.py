"""PodTemplate: a stored template, for controllers that look it up."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kubist.api.kinds.core.podspec import default_pod_template, drop_disabled_template_fields
from kubist.api.kinds.shared.workload import Workload, validate_template
from kubist.api.resources.strategy import Errors
from kubist.model.meta import objectmeta
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context


class PodTemplateStrategy(Workload):
    """Workload without spec and status, only with a template."""

    returns_deleted = True
    reset_fields: ClassVar[tuple[str, ...]] = ()
    generation_fields: ClassVar[tuple[str, ...]] = ("template",)
    template: ClassVar[str] = "template"

    def default(self, obj: Object) -> None:
        default_pod_template(obj.setdefault("template", {}))

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        drop_disabled_template_fields(obj["template"])

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        drop_disabled_template_fields(new["template"], old.get("template"))

    def validate_create(self, ctx: Context, obj: Object) -> Errors:
        return validate_template(ctx, obj["template"], "template")

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        errors = objectmeta.validate_update(new["metadata"], old["metadata"])
        return errors + validate_template(ctx, new["template"], "template", old.get("template"))


strategy = PodTemplateStrategy()
