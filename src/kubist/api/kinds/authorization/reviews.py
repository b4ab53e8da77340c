"""Base of the access reviews: validation of the spec, the authorization check, and the status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubist.api.resources.context import Context, User
from kubist.api.resources.strategy import Create, Errors
from kubist.base.offload import LONG, away
from kubist.model.meta import fields, names, selectors
from kubist.model.meta.labels import validate_requirement
from kubist.model.meta.object import Object
from kubist.model.meta.status import invalid
from kubist.model.schema.internals import internal_form

GROUP = "authorization.k8s.io"
_ATTRIBUTES = ("resourceAttributes", "nonResourceAttributes")


class AccessReview(Create):
    """Review of a user, a verb, and a resource or a non-resource path. Its metadata must be empty."""

    group = GROUP
    managed = True
    about_others = True
    """Whether spec names the user. If False, the review is about the requesting user."""

    async def create(self, ctx: Context, body: Object) -> Object:
        spec = body.get("spec") or {}
        long = len(ctx.request.body) > LONG
        errors = await away(long, self.validate, body, spec)
        if errors:
            raise invalid(GROUP, "", "", errors)
        user = _user(spec) if self.about_others else ctx.user
        resource = spec.get("resourceAttributes")
        verdicts: list[Any] = []
        if resource is not None:
            allowed, reason = await ctx.authorize(
                resource.get("verb", ""),
                group=resource.get("group", ""),
                version=resource.get("version") or "*",
                resource=resource.get("resource", ""),
                subresource=resource.get("subresource", ""),
                namespace=resource.get("namespace", ""),
                name=resource.get("name", ""),
                user=user,
                verdicts=verdicts,
            )
        else:
            path = spec["nonResourceAttributes"]
            url_path = path.get("path", "")
            allowed, reason = await ctx.authorize(
                path.get("verb", ""), path=url_path, user=user, verdicts=verdicts
            )
        status: Object = {"allowed": allowed}
        if any(verdict.denied for verdict in verdicts):
            status["denied"] = True
        if reason:
            status["reason"] = reason
        ignored = await away(long, _ignored_selectors, resource or {})
        ignored[:0] = [verdict.error for verdict in verdicts if verdict.error]
        if ignored:
            status["evaluationError"] = "; ".join(ignored)
        body["status"] = status
        return body

    def validate(self, body: Object, spec: Object) -> Errors:
        errors = self.validate_spec(spec)
        if _metadata(body):
            errors.append(fields.invalid("metadata", body["metadata"], "must be empty"))
        return errors

    def validate_spec(self, spec: Object) -> Errors:
        resource, path = (spec.get(name) for name in _ATTRIBUTES)
        errors = []
        if resource is not None and path is not None:
            why = "cannot be specified in combination with resourceAttributes"
            errors.append(
                fields.invalid(
                    "spec.nonResourceAttributes",
                    internal_form("authorization.NonResourceAttributes", path),
                    why,
                )
            )
        if resource is None and path is None:
            why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            errors.append(fields.invalid("spec.resourceAttributes", None, why))
        if self.about_others and not spec.get("user") and not spec.get("groups"):
            errors.append(fields.invalid("spec.user", "", "at least one of user or group must be specified"))
        for name in ("fieldSelector", "labelSelector"):
            selector = (resource or {}).get(name)
            if selector is not None:
                errors += _validate_selector(selector, f"spec.resourceAttributes.{name}", name)
        return errors


def _metadata(body: Object) -> Object:
    """Non-empty metadata sent by the client. managedFields do not count, because the server sets them."""
    return {name: value for name, value in body["metadata"].items() if name != "managedFields" and value}


def local_metadata(body: Object) -> Object:
    return {name: value for name, value in _metadata(body).items() if name != "namespace"}


def _user(spec: Object) -> User:
    return User(
        name=spec.get("user", ""),
        uid=spec.get("uid", ""),
        groups=tuple(spec.get("groups") or ()),
        extra=tuple((key, tuple(values or ())) for key, values in (spec.get("extra") or {}).items()),
    )


def _validate_selector(selector: Object, path: str, kind: str) -> Errors:
    errors = []
    raw = selector.get("rawSelector", "")
    requirements = selector.get("requirements") or []
    if raw and requirements:
        why = "may not specified at the same time as requirements"
        errors.append(fields.invalid(f"{path}.rawSelector", raw, why))
    if not raw and not requirements:
        why = f"when {path} is specified, requirements or rawSelector is required"
        errors.append(fields.required(f"{path}.requirements", why))
    for index, requirement in enumerate(requirements):
        place = f"{path}.requirements[{index}]"
        if kind == "labelSelector":
            errors += validate_requirement(requirement, place, allow_unknown_operators=True)
            continue
        if not requirement.get("key"):
            errors.append(fields.required(f"{place}.key", "must be specified"))
        in_label_terms = {**requirement, "key": "a"}
        errors += validate_requirement(
            in_label_terms, place, allow_invalid_values=True, allow_unknown_operators=True
        )
    return errors


def _ignored_selectors(resource: Object) -> list[str]:
    """Evaluation errors for selectors that do not parse. The check ignores such a selector and is then broader."""
    ignored = []
    for name, is_valid, parse in _SELECTORS:
        selector = resource.get(name)
        if selector is None:
            continue
        good, total = _count_valid(selector, is_valid, parse)
        if good < total:
            partly = "partially " if good else ""
            ignored.append(f"spec.resourceAttributes.{name} {partly}ignored due to parse error")
    return ignored


def _is_field_requirement(requirement: Object) -> bool:
    return requirement.get("operator") in ("In", "NotIn") and len(requirement.get("values") or ()) == 1


def _is_label_requirement(requirement: Object) -> bool:
    if requirement.get("operator") not in ("In", "NotIn", "Exists", "DoesNotExist"):
        return False
    return not any(names.label_value(value) for value in requirement.get("values") or ())


_SELECTORS: tuple[tuple[str, Callable[[Object], bool], Callable[[str], object]], ...] = (
    ("fieldSelector", _is_field_requirement, selectors.parse_field_selector),
    ("labelSelector", _is_label_requirement, selectors.parse_label_selector),
)
"""Selectors of a review: the field, the test of one requirement, and the parser of rawSelector."""


def _count_valid(
    selector: Object, is_valid: Callable[[Object], bool], parse: Callable[[str], object]
) -> tuple[int, int]:
    """Number of requirements that are valid, and number of all requirements."""
    requirements = selector.get("requirements") or []
    if requirements:
        return sum(map(is_valid, requirements)), len(requirements)
    try:
        parse(selector.get("rawSelector", ""))
    except ValueError:
        return 0, 1
    return 1, 1
