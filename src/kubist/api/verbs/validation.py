"""Validation of written objects: metadata and the kind's rules, 422 with all causes; then the kind's warnings."""

from __future__ import annotations

from collections.abc import Callable

from kubist.api.resources.strategy import Update
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.base.offload import Lengthy, elsewhere
from kubist.model.meta import names, objectmeta, status
from kubist.model.meta.fields import FieldError
from kubist.model.meta.object import Object


async def validate_new_object(ctx: ResourceRequest, obj: Object) -> None:
    """Validate an object before it is created. Long work leaves the event loop."""
    is_long = ctx.long
    if not is_long:
        try:
            _check_new(ctx, obj)
        except Lengthy:
            is_long = True
    if is_long:
        await elsewhere(_check_new, ctx, obj)


async def validate_update(ctx: ResourceRequest, target: Update, new: Object, old: Object) -> None:
    """Validate a changed object. Long work leaves the event loop."""
    is_long = ctx.long
    if not is_long:
        try:
            _check_update(ctx, target, new, old)
        except Lengthy:
            is_long = True
    if is_long:
        await elsewhere(_check_update, ctx, target, new, old)


def _check_new(ctx: ResourceRequest, obj: Object) -> None:
    errors = _errors_of_new(ctx, obj)
    if errors:
        errors = _as_shown(ctx, errors, obj, lambda view: _errors_of_new(ctx, view))
        name = obj["metadata"].get("name", "")
        raise status.invalid(ctx.resource.stored_group, ctx.resource.kind, name, errors)
    for warning in ctx.resource.strategy.warnings(ctx, obj, None):
        ctx.warn(warning)


def _errors_of_new(ctx: ResourceRequest, obj: Object) -> list[FieldError]:
    metadata, strategy = obj["metadata"], ctx.resource.strategy
    namespaced = ctx.resource.namespaced
    if strategy.validates_metadata:
        return strategy.validate(ctx, obj, None)
    if strategy.lenient_metadata:
        return strategy.validate(ctx, obj, None) or objectmeta.validate_create(
            metadata, namespaced=namespaced, validate_name=names.path_segment, qualified_finalizers=False
        )
    errors = objectmeta.validate_create(
        metadata,
        namespaced=namespaced,
        validate_name=strategy.validate_name,
        qualified_finalizers=strategy.qualified_finalizers,
    )
    return errors + strategy.validate(ctx, obj, None)


def _check_update(ctx: ResourceRequest, target: Update, new: Object, old: Object) -> None:
    resource = ctx.resource

    def validated(new: Object) -> list[FieldError]:
        errors = objectmeta.validate_any_update(
            new["metadata"], old["metadata"], namespaced=resource.namespaced
        )
        return errors + kind_errors(ctx, target, new, old)

    errors = validated(new)
    if errors:
        errors = _as_shown(ctx, errors, new, validated)
        raise status.invalid(resource.stored_group, resource.kind, ctx.info.name, errors)
    for warning in target.warnings(ctx, new, old):
        ctx.warn(warning)


def kind_errors(ctx: ResourceRequest, target: Update, new: Object, old: Object) -> list[FieldError]:
    """Errors of an update by the rules of the kind, which validate the metadata again (`Update.metadata_rules`)."""
    errors: list[FieldError] = []
    for rules in target.metadata_rules:
        metadata, strategy = new["metadata"], ctx.resource.strategy
        qualified = strategy.qualified_finalizers
        if rules == "update":
            errors += objectmeta.validate_update(metadata, old["metadata"], qualified_finalizers=qualified)
        else:
            errors += objectmeta.validate_create(
                metadata,
                namespaced=ctx.resource.namespaced,
                validate_name=strategy.validate_name,
                qualified_finalizers=qualified,
            )
    return errors + target.validate(ctx, new, old)


def _as_shown(
    ctx: ResourceRequest,
    errors: list[FieldError],
    obj: Object,
    validate: Callable[[Object], list[FieldError]],
) -> list[FieldError]:
    """Errors whose messages show the empty values that the client sent.

    They come from a second validation, of the object with these values. They are used only if it finds the same errors,
    because a rule may depend on whether a field was sent."""
    view = ctx.sent.as_shown(obj)
    if view is obj:
        return errors
    again = validate(view)
    same = [(error.reason, error.field) for error in again] == [
        (error.reason, error.field) for error in errors
    ]
    return again if same else errors
