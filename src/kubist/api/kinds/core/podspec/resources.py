"""Resource requirements (limits, requests, claims) of containers and pods: validation, defaults, and the QoS class."""

from __future__ import annotations

import functools
from typing import Any

from orjson import dumps, loads

from kubist.api.kinds.core.podspec.options import Options
from kubist.api.kinds.core.podspec.visit import restarts_always
from kubist.api.kinds.shared.resource_names import (
    COMPUTE,
    HUGE_PAGES,
    is_huge_page,
    is_overcommit_allowed,
    validate_container_resource_name,
    validate_quantity,
    validate_resource_name,
)
from kubist.base.caching import bounded_cache, skip_validated
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, duplicate, forbidden, invalid, not_supported, required
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import Quantity, parse_quantity
from kubist.model.schema.internals import internal_form

Errors = list[FieldError]
ResourceList = dict[str, str]

_SHOWN_CLAIMS = 64
_COMPUTE = frozenset({"cpu", "memory"})


def _pod_resource_name(name: str, path: str) -> Errors:
    errors = validate_resource_name(name, path)
    if not errors and not _is_pod_level(name):
        errors.append(not_supported(path, name, ("cpu", HUGE_PAGES, "memory")))
    return errors


def _is_pod_level(name: str) -> bool:
    return name in _COMPUTE or is_huge_page(name)


def _is_divisible(name: str, amount: Quantity) -> bool:
    """Whether the amount is a whole number of huge pages of this size."""
    try:
        page = parse_quantity(name.removeprefix(HUGE_PAGES))
    except ValueError:
        return False
    if page.nanos <= 0 or page.milli_value() % 1000:
        return False
    size = page.value()
    return size != 0 and amount.round_up(-3).value() % size == 0


def has_indivisible_huge_pages(requirements: Object) -> bool:
    return any(
        not _is_divisible(name, parse_quantity(amount))
        for field in ("limits", "requests")
        for name, amount in (requirements.get(field) or {}).items()
        if is_huge_page(name)
    )


class ClaimNames(frozenset[str]):
    """Names of the pod's resource claims."""

    @functools.cached_property
    def listed(self) -> str:
        """Names as listed in the error message. Computed once, because every claim of every container may need them."""
        if not self:
            return " which is empty"
        more = ", ..." if len(self) > _SHOWN_CLAIMS else ""
        return ": " + ", ".join(sorted(self)[:_SHOWN_CLAIMS]) + more


NO_CLAIMS = ClaimNames()


def validate_requirements(
    requirements: Object, claims: ClaimNames, path: str, options: Options, *, of_pod: bool = False
) -> Errors:
    """Validates limits, requests and claims of a container, or of the pod with `of_pod`."""
    if of_pod or options.indivisible_huge_pages:
        errors = _amounts(requirements, path, of_pod, options.indivisible_huge_pages)
    else:
        errors = _amounts_of_container(requirements, path)
    if "claims" in requirements:
        errors += _claims(requirements["claims"], claims, f"{path}.claims")
    return errors


@skip_validated(dumps)
def _amounts_of_container(requirements: Object, path: str) -> Errors:
    return _amounts(requirements, path, of_pod=False, indivisible_huge_pages=False)


def _amounts(requirements: Object, path: str, of_pod: bool, indivisible_huge_pages: bool) -> Errors:
    errors: Errors = []
    limits, requests = requirements.get("limits") or {}, requirements.get("requests") or {}
    ordinary = _COMPUTE if of_pod else COMPUTE
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            amount = parse_quantity(text)
            if name in ordinary and amount.nanos >= 0:
                if amounts is requests and name in limits and limits[name] != text:
                    errors += _against_limit(name, amount, limits[name], path)
                continue
            where = f"{path}.{field}[{name}]"
            if of_pod:
                errors += _pod_resource_name(name, where)
            elif name not in COMPUTE:
                errors += validate_container_resource_name(name, where)
            errors += validate_quantity(name, text, where)
            if field == "requests":
                errors += _against_limit(name, amount, limits.get(name), path)
            if is_huge_page(name) and not (indivisible_huge_pages or _is_divisible(name, amount)):
                why = f"{amount} is not positive integer multiple of {name}"
                errors.append(invalid(where, str(amount), why))
    without_compute = _COMPUTE.isdisjoint(limits) and _COMPUTE.isdisjoint(requests)
    if without_compute and any(is_huge_page(name) for name in (*limits, *requests)):
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    return errors


def _against_limit(name: str, request: Quantity, limit_text: str | None, path: str) -> Errors:
    if limit_text is None:
        if is_overcommit_allowed(name):
            return []
        return [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    limit = parse_quantity(limit_text)
    if request.nanos != limit.nanos and not is_overcommit_allowed(name):
        why = f"must be equal to {name} limit of {limit}"
    elif request.nanos > limit.nanos:
        why = f"must be less than or equal to {name} limit of {limit}"
    else:
        return []
    return [invalid(f"{path}.requests", str(request), why)]


def _claims(claims: list[Object], known: ClaimNames, path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    requests: dict[str, int] = {}
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        name, request = claim.get("name", ""), claim.get("request", "")
        if not name:
            errors.append(required(where))
            continue
        if name in seen:
            errors.append(duplicate(where, name))
        else:
            key = f"{name}/{request}" if request else name
            if request:
                errors += [invalid(f"{where}.request", request, m) for m in names.dns_label(request)]
            if key in seen:
                errors.append(duplicate(where, key))
            elif not request:
                errors += [duplicate(where, name)] * requests.get(name, 0)
            else:
                requests[name] = requests.get(name, 0) + 1
            seen.add(key)
        if name not in known:
            detail = f"must be one of the names in pod.spec.resourceClaims{known.listed}"
            errors.append(FieldError("FieldValueNotFound", where, f"Not found: {quoted(name)}: {detail}"))
    return errors


def validate_pod_resources(spec: Object, claims: ClaimNames, path: str, options: Options) -> Errors:
    """Validates pod-level resources, also against the resources of the containers."""
    resources = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    errors: Errors = []
    if resources.get("claims") is not None:
        errors.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    errors += validate_requirements(resources, claims, path, options, of_pod=True)
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, total in aggregate(spec, "requests").items():
        if name in requests and total > parse_quantity(requests[name]):
            why = f"must be greater than or equal to aggregate container requests of {total}"
            errors.append(invalid(f"{path}.requests[{name}]", requests[name], why))
    for name, total in aggregate(spec, "limits").items():
        if is_huge_page(name) and name in limits and total > parse_quantity(limits[name]):
            why = f"must be greater than or equal to aggregate container limits of {total}"
            errors.append(invalid(f"{path}.limits[{name}]", limits[name], why))
    for index, container in enumerate(spec.get("containers") or ()):
        for name, limit in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and parse_quantity(limit) > parse_quantity(limits[name]):
                where = f"{path}.containers[{index}][{name}].limits"
                errors.append(
                    invalid(where, limit, f"must be less than or equal to pod limits of {limits[name]}")
                )
    return errors


def validate_resource_claims(claims: list[Object], annotations: dict[str, str], path: str) -> Errors:
    """Validates spec.resourceClaims, which containers refer to by name."""
    if "kubernetes.io/config.mirror" in annotations:
        return [forbidden("[]", "static pods do not support resource claims") for _ in claims]
    errors: Errors = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        name = claim.get("name", "")
        if not name:
            errors.append(required(f"{where}.name"))
        elif name in seen:
            errors.append(duplicate(f"{where}.name", name))
        else:
            errors += [invalid(f"{where}.name", name, problem) for problem in names.dns_label(name)]
            seen.add(name)
        sources = [f for f in ("resourceClaimName", "resourceClaimTemplateName") if f in claim]
        if len(sources) == 2:
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(invalid(where, internal_form("core.PodResourceClaim", claim), why))
        elif not sources:
            why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(where, internal_form("core.PodResourceClaim", claim), why))
        for field in sources:
            problems = names.dns_subdomain(claim[field])
            errors += [invalid(f"{where}.{field}", claim[field], problem) for problem in problems]
    return errors


def aggregate(spec: Object, field: str) -> dict[str, Quantity]:
    """Total `requests` or `limits` of a pod. Init containers run one after another, together with the sidecars started
    before them. The total is at least their peak."""
    total: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(total, container, field)
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        if restarts_always(container):
            _add(total, container, field)
            _add(sidecars, container, field)
            need = sidecars
        else:
            need = dict(sidecars)
            _add(need, container, field)
        _raise_to(peak, need)
    _raise_to(total, peak)
    return total


def _add(total: dict[str, Quantity], container: Object, field: str) -> None:
    for name, text in ((container.get("resources") or {}).get(field) or {}).items():
        amount = parse_quantity(text)
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: dict[str, Quantity], need: dict[str, Quantity]) -> None:
    for name, amount in need.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def default_pod_resources(spec: Object) -> None:
    """Defaults missing requests to the limits, for each container and then for the pod."""
    for field in ("containers", "initContainers"):
        if field not in spec:
            continue
        for container in spec[field] or ():
            resources = container.get("resources")
            if resources and resources.get("limits"):
                resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    if "resources" in spec:
        _default_huge_page_limits(spec)
        _default_pod_requests(spec)


def _default_huge_page_limits(spec: Object) -> None:
    resources = spec["resources"]
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if limits or requests:
        for name, total in aggregate(spec, "limits").items():
            if is_huge_page(name) and name not in requests and name not in limits:
                resources.setdefault("limits", {})[name] = str(total)


def _default_pod_requests(spec: Object) -> None:
    resources = spec["resources"]
    limits = resources.get("limits")
    if not limits:
        return
    requests = dict(resources.get("requests") or {})
    for name, total in aggregate(spec, "requests").items():
        if name in _COMPUTE:
            requests.setdefault(name, str(total))
    for name, limit in limits.items():
        if _is_pod_level(name):
            requests.setdefault(name, limit)
    if requests:
        resources["requests"] = requests


def round_up_to_milli(resources: ResourceList | None) -> None:
    """Rounds amounts finer than 1m up to a multiple of 1m."""
    if not resources:
        return
    for name, text in resources.items():
        amount = parse_quantity(text)
        if amount.exponent < -3:
            resources[name] = str(amount.round_up(-3))


def same(new: Any, old: Any, key: str = "", parent: str = "") -> bool:
    """Whether the values are equal. Quantities are compared by amount, not by text."""
    if new == old:
        return True
    if isinstance(new, dict) and isinstance(old, dict):
        return new.keys() == old.keys() and all(same(new[k], old[k], k, key) for k in new)
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(same(a, b, key, parent) for a, b in zip(new, old, strict=True))
    is_amount = parent in ("limits", "requests", "overhead") or key in ("sizeLimit", "divisor")
    return is_amount and parse_quantity(new) == parse_quantity(old)


def qos_class(spec: Object) -> str:
    """Guaranteed if every container has equal limits and requests for cpu and memory, BestEffort if none has any,
    else Burstable. Pod-level resources take precedence."""
    if "resources" in spec:
        return _qos_class(dumps([spec["resources"]]))
    containers = (spec.get("containers") or []) + (spec.get("initContainers") or [])
    return _qos_class(dumps([container.get("resources") for container in containers]))


@bounded_cache(entries=4096, key_length=1024)
def _qos_class(written: bytes) -> str:
    """QoS class of a list of resource requirements. Its JSON text is the cache key, which pods of one template
    share."""
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    for resources in loads(written):
        if not resources:
            guaranteed = False
            continue
        _add_compute(requests, resources.get("requests"))
        if _add_compute(limits, resources.get("limits")) < len(_COMPUTE):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _add_compute(total: dict[str, Quantity], amounts: dict[str, str] | None) -> int:
    """Adds cpu and memory of a resource list to `total`. Returns how many of the two it has (0 to 2)."""
    count = 0
    if amounts:
        for name in _COMPUTE:
            if name in amounts and (amount := parse_quantity(amounts[name])).nanos > 0:
                total[name] = total[name] + amount if name in total else amount
                count += 1
    return count
