"""PodSpec in a Pod, a PodTemplate or the template of a workload.

The modules of this package define the defaults, validation and warnings of each part once. Kinds with a template import
the functions for whole templates from here.
"""

from __future__ import annotations

from kubist.api.kinds.core.podspec.annotations import validate_pod_annotations
from kubist.api.kinds.core.podspec.defaults import default_pod_spec, default_pod_template
from kubist.api.kinds.core.podspec.disabled import drop_disabled_fields
from kubist.api.kinds.core.podspec.options import Options, current_options
from kubist.api.kinds.core.podspec.profiles import validate_profiles_match
from kubist.api.kinds.core.podspec.spec import validate_pod_spec
from kubist.api.kinds.core.podspec.tolerated import options_for_update
from kubist.api.kinds.core.podspec.warnings import pod_spec_warnings
from kubist.model.meta import objectmeta
from kubist.model.meta.fields import FieldError, forbidden
from kubist.model.meta.object import Object

__all__ = [
    "default_pod_spec",
    "default_pod_template",
    "drop_disabled_template_fields",
    "template_warnings",
    "validate_pod_template",
]

Errors = list[FieldError]


def validate_pod_template(
    template: Object, path: str, old: Object | None = None, *, allow_privileged: bool = True
) -> Errors:
    """Errors of a template. Errors that `old`, the stored template, already has are tolerated where compatibility
    requires it. `allow_privileged` is the server's setting."""
    errors = _validate(template, path, current_options(is_pod=False, allow_privileged=allow_privileged))
    if errors and old is not None:
        options = options_for_update(old, is_pod=False, allow_privileged=allow_privileged)
        errors = _validate(template, path, options)
    return errors


def _validate(template: Object, path: str, options: Options) -> Errors:
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    errors = objectmeta.validate_labels(labels, f"{path}.labels")
    if annotations:
        errors += objectmeta.validate_annotations(annotations, f"{path}.annotations")
        errors += validate_pod_annotations(annotations, spec, f"{path}.annotations", options)
    errors += validate_pod_spec(spec, None, f"{path}.spec", options)
    if annotations:
        errors += validate_profiles_match(annotations, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        why = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", why))
    return errors


def template_warnings(template: Object | None, path: str) -> list[str]:
    """Warnings for a template."""
    if template is None:
        return []
    return pod_spec_warnings(template.get("spec") or {}, template.get("metadata") or {}, path)


def drop_disabled_template_fields(template: Object | None, old: Object | None = None) -> None:
    """Removes fields whose feature gate is off, unless the `old` template has them."""
    if template is not None:
        drop_disabled_fields(template.get("spec") or {}, (old or {}).get("spec"))
