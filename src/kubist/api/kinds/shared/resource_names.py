"""Resource names (cpu, example.com/gpu) and amounts, for containers, nodes, quotas and limits."""

from __future__ import annotations

from kubist.base.caching import bounded_cache
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, invalid
from kubist.model.meta.quantity import parse_quantity

Errors = list[FieldError]

HUGE_PAGES = "hugepages-"
REQUESTS_HUGE_PAGES = "requests.hugepages-"
NATIVE_DOMAIN = "kubernetes.io/"

COUNTED = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
"""Resources that count objects. Their amounts must be integers."""

COMPUTE = frozenset({"cpu", "memory", "ephemeral-storage"})

QUOTA = (
    COUNTED
    | COMPUTE
    | {f"{side}.{resource}" for side in ("requests", "limits") for resource in COMPUTE}
    | {"requests.storage"}
)
STANDARD = QUOTA | {"storage"}


def is_huge_page(name: str) -> bool:
    return name.startswith(HUGE_PAGES)


def _is_quota_huge_page(name: str) -> bool:
    return name.startswith((HUGE_PAGES, REQUESTS_HUGE_PAGES))


def is_native(name: str) -> bool:
    """Whether the resource is Kubernetes' own, not an extended resource."""
    return "/" not in name or NATIVE_DOMAIN in name


def is_extended(name: str) -> bool:
    if is_native(name) or name.startswith("requests."):
        return False
    return not names.qualified_name(f"requests.{name}")


def is_standard_container(name: str) -> bool:
    return name in COMPUTE or is_huge_page(name)


def is_standard_quota(name: str) -> bool:
    return name in QUOTA or _is_quota_huge_page(name)


def is_integer(name: str) -> bool:
    return name in COUNTED or is_extended(name)


def is_overcommit_allowed(name: str) -> bool:
    return is_native(name) and not is_huge_page(name)


def validate_resource_name(name: str, path: str) -> Errors:
    errors = [invalid(path, name, message) for message in names.qualified_name(name)]
    if not errors and "/" not in name and name not in STANDARD and not _is_quota_huge_page(name):
        errors.append(invalid(path, name, "must be a standard resource type or fully qualified"))
    return errors


def validate_container_resource_name(name: str, path: str) -> Errors:
    errors = validate_resource_name(name, path)
    if "/" not in name:
        if not is_standard_container(name):
            errors.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def validate_quota_resource_name(name: str, path: str) -> Errors:
    errors = validate_resource_name(name, path)
    if "/" not in name and not is_standard_quota(name):
        errors.append(invalid(path, name, "must be a standard resource for quota"))
    return errors


@bounded_cache(entries=4096, key_length=64)
def is_whole(quantity: str) -> bool:
    """Whether the quantity, which defaults rounded to a thousandth, has no fraction. As in kube-apiserver, one whose
    milli value overflows may count as fractional."""
    return parse_quantity(quantity).round_up(-3).milli_value() % 1000 == 0


def validate_quantity(name: str, quantity: str, path: str) -> Errors:
    """Validates an amount of resource `name`: not negative, and an integer for counted and extended resources."""
    amount = parse_quantity(quantity)
    errors: Errors = []
    if amount.nanos < 0:
        errors.append(invalid(path, quantity, "must be greater than or equal to 0"))
    if not is_whole(quantity) and is_integer(name):
        errors.append(invalid(path, quantity, "must be an integer"))
    return errors


def validate_positive_quantity(quantity: str, path: str) -> Errors:
    if parse_quantity(quantity).nanos > 0:
        return []
    return [invalid(path, quantity, "must be greater than zero")]
