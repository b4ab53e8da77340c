"""PodSpec in a Pod, a PodTemplate or the template of a workload.

Defaults, validation and warnings of each part are here, once. Kinds with a template import them from here.
"""

from kubist.api.kinds.core.podspec.defaults import default_pod_spec, default_pod_template
from kubist.api.kinds.core.podspec.template import (
    drop_disabled_template_fields,
    template_warnings,
    validate_pod_template,
)

__all__ = [
    "default_pod_spec",
    "default_pod_template",
    "drop_disabled_template_fields",
    "template_warnings",
    "validate_pod_template",
]
