"""Rules shared by policies and bindings: paramKind, paramRef, variables, and the right to read the parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar

from kubist.api.kinds.admissionregistration import expressions
from kubist.api.kinds.admissionregistration.expressions import Environment
from kubist.api.kinds.admissionregistration.matching import (
    FAILURE_POLICIES,
    default_match_resources,
    one_of,
    reserved_name_warnings,
    validate_match_conditions,
    validate_match_resources,
)
from kubist.api.resources.allocations import Allocations
from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Errors, Strategy
from kubist.base.offload import leave_loop
from kubist.model.meta import fields, names, status
from kubist.model.meta.labels import validate_selector
from kubist.model.meta.object import Object

_is_identifier = re.compile("[_a-zA-Z][_a-zA-Z0-9]*").fullmatch
_is_reserved = re.compile(
    "true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|"
    "return|var|void|while"
).fullmatch

MANY_EXPRESSIONS = 64
"""Number of expressions in a policy above which they are compiled outside the event loop."""
_EXPRESSIONS = ("variables", "validations", "mutations", "auditAnnotations")


class _PolicyObject(Strategy):
    """Policy or binding. Updates need a resourceVersion, and the writer must be allowed to read the parameters."""

    generation_fields = ("spec",)
    unconditional_update = False
    qualified_finalizers = False
    parameters: ClassVar[str]
    """Field of spec that refers to objects that the writer must be allowed to read."""
    metadata_rules = ("object",)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return reserved_name_warnings(new)

    async def before_write(
        self, ctx: Context, new: Object, old: Object | None, allocations: Allocations
    ) -> None:
        watched = (self.parameters, "policyName")
        if old is not None and all(new["spec"].get(name) == old["spec"].get(name) for name in watched):
            return
        if new["spec"].get(self.parameters) is not None and "system:masters" not in ctx.user.groups:
            await self._require_access(ctx, new)

    async def _require_access(self, ctx: Context, obj: Object) -> None:
        why = await self.access_error(ctx, obj["spec"])
        if why:
            error = fields.forbidden(f"spec.{self.parameters}", why)
            raise status.invalid(ctx.resource.group, ctx.resource.kind, obj["metadata"]["name"], [error])

    async def access_error(self, ctx: Context, spec: Object) -> str:
        """Error message if the user may not read the parameters, otherwise ""."""
        raise AssertionError("subclasses must override access_error")


def _resource_of(ctx: Context, kind: Object | None) -> tuple[str, str]:
    """(group, resource) of a paramKind. An unknown part is `*`, so that the check requires access to all."""
    api_version = (kind or {}).get("apiVersion", "")
    if kind is None or api_version.count("/") > 1:
        return "*", "*"
    group, _, version = api_version.rpartition("/")
    resource = ctx.objects.find_kind(group, version, kind.get("kind", ""))
    return group, resource.resource if resource else "*"


class PolicyStrategy(_PolicyObject):
    parameters = "paramKind"

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("failurePolicy", "Fail")
        default_match_resources(spec.get("matchConstraints"))

    async def access_error(self, ctx: Context, spec: Object) -> str:
        kind = spec["paramKind"]
        group, resource = _resource_of(ctx, kind)
        allowed, _ = await ctx.authorize(
            "get", group=group, resource=resource, namespace="*", name="*", user=ctx.user
        )
        if allowed:
            return ""
        return (
            f'user {ctx.user.name} must have "get" permission on all objects of the referenced paramKind '
            f"(kind={kind.get('kind', '')}, apiVersion={kind.get('apiVersion', '')})"
        )


class BindingStrategy(_PolicyObject):
    parameters = "paramRef"
    policies: ClassVar[str]
    """Resource name of the bound policies."""

    def default(self, obj: Object) -> None:
        default_match_resources(obj.setdefault("spec", {}).get("matchResources"))

    async def access_error(self, ctx: Context, spec: Object) -> str:
        name = spec.get("policyName", "")
        policy = ctx.objects.get(self.policies, name, group="admissionregistration.k8s.io")
        kind = ((policy or {}).get("spec") or {}).get("paramKind")
        group, resource = _resource_of(ctx, kind)
        ref = spec["paramRef"]
        verb = "get" if ref.get("name") else "list"
        allowed, _ = await ctx.authorize(
            verb,
            group=group,
            resource=resource,
            namespace=ref.get("namespace", ""),
            name=ref.get("name", ""),
            user=ctx.user,
        )
        if allowed:
            return ""
        user = f'user {ctx.user.name} does not have "{verb}" permission'
        needed = (
            f"to determine minimum required permissions and {user} for all groups, versions and resources"
        )
        if policy is None:
            return f"unable to get policy {name} {needed}"
        if kind is not None and resource == "*":
            return f"unable to resolve paramKind {kind} {needed}"
        return f"{user} on the object referenced by paramRef"


def validate_matching(spec: Object) -> Errors:
    """Validates failurePolicy, paramKind and matchConstraints of a policy."""
    errors = one_of(spec.get("failurePolicy"), "spec.failurePolicy", FAILURE_POLICIES, needed=True)
    kind = spec.get("paramKind")
    if kind is not None:
        errors += _validate_param_kind(kind, "spec.paramKind")
    match = spec.get("matchConstraints")
    if match is None:
        errors.append(fields.required("spec.matchConstraints"))
    else:
        errors += validate_match_resources(match, "spec.matchConstraints")
        if not match.get("resourceRules"):
            errors.append(fields.required("spec.matchConstraints.resourceRules"))
    return errors


def validate_conditions(spec: Object, old: Object | None) -> Errors:
    """Validates match conditions. An update checks them only if matchConditions or paramKind changed."""
    if old is not None and all(spec.get(n) == old.get(n) for n in ("paramKind", "matchConditions")):
        return []
    return validate_match_conditions(
        spec.get("matchConditions"), "spec.matchConditions", params=spec.get("paramKind") is not None
    )


def validate_variables(spec: Object, environment: Environment) -> tuple[Errors, Environment]:
    """Validates variables in order, because each sees the earlier ones. Also returns the environment with all
    variables."""
    errors: Errors = []
    if sum(len(spec.get(name) or ()) for name in _EXPRESSIONS) > MANY_EXPRESSIONS:
        leave_loop()
    for index, variable in enumerate(spec.get("variables") or ()):
        path = f"spec.variables[{index}]"
        name, expression = variable.get("name", ""), variable.get("expression", "")
        if not name.strip():
            errors.append(fields.required(f"{path}.name", "name is not specified"))
        elif not _is_identifier(name) or _is_reserved(name):
            errors.append(fields.invalid(f"{path}.name", name, "must be a valid CEL identifier"))
        if not expression.strip():
            errors.append(fields.required(f"{path}.expression", "expression is not specified"))
            continue
        errors += expressions.validate(expression, f"{path}.expression", environment, "any")
        environment = environment.defining(name, expression)
    return errors, environment


def _validate_param_kind(kind: Object, path: str) -> Errors:
    errors = []
    api_version = kind.get("apiVersion", "")
    group, _, version = api_version.rpartition("/")
    if not api_version:
        errors.append(fields.required(f"{path}.apiVersion"))
    elif api_version.count("/") > 1:
        why = f"unexpected GroupVersion string: {api_version}"
        errors.append(fields.invalid(f"{path}.apiVersion", api_version, why))
    else:
        if group and (messages := names.dns_subdomain(group)):
            errors.append(fields.invalid(f"{path}.apiVersion", group, ",".join(messages)))
        if not version:
            errors.append(fields.invalid(f"{path}.apiVersion", api_version, "version must be specified"))
        elif messages := names.dns_1035_label(version):
            errors.append(fields.invalid(f"{path}.apiVersion", version, ",".join(messages)))
    name = kind.get("kind", "")
    if not name:
        errors.append(fields.required(f"{path}.kind"))
    elif messages := names.dns_1035_label(name.lower()):
        why = f"may have mixed case, but should otherwise match: {','.join(messages)}"
        errors.append(fields.invalid(f"{path}.kind", name, why))
    return errors


def validate_binding(spec: Object) -> Errors:
    policy = spec.get("policyName", "")
    errors = []
    if not policy:
        errors.append(fields.required("spec.policyName"))
    else:
        errors += [fields.invalid("spec.policyName", policy, m) for m in names.dns_subdomain(policy)]
    errors += _validate_param_ref(spec.get("paramRef"), "spec.paramRef")
    return errors + validate_match_resources(spec.get("matchResources"), "spec.matchResources")


def _validate_param_ref(ref: Object | None, path: str) -> Errors:
    if ref is None:
        return []
    errors = []
    name, selector = ref.get("name", ""), ref.get("selector")
    both = "name and selector are mutually exclusive"
    errors += [fields.invalid(f"{path}.name", name, message) for message in names.path_segment(name)]
    if name and selector is not None:
        errors.append(fields.forbidden(f"{path}.name", both))
    errors += validate_selector(selector, f"{path}.selector")
    if name and selector is not None:
        errors.append(fields.forbidden(f"{path}.selector", both))
    if not name and selector is None:
        errors.append(fields.required(path, "one of name or selector must be specified"))
    action = ref.get("parameterNotFoundAction")
    if not action:
        errors.append(fields.required(f"{path}.parameterNotFoundAction"))
    else:
        errors += one_of(action, f"{path}.parameterNotFoundAction", ("Deny", "Allow"))
    return errors
