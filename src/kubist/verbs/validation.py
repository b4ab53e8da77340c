"""Validation of written objects: metadata and the kind's rules, 422 with all causes; then the kind's warnings."""

from __future__ import annotations

from collections.abc import Callable

from kubist.meta import names, objectmeta, status
from kubist.meta.fields import FieldError
from kubist.meta.object import Object
from kubist.offload import Lengthy, away, elsewhere
from kubist.resources.strategy import Update
from kubist.verbs.call import Call


async def validate_new_object(call: Call, obj: Object) -> None:
    """Validate an object before it is created. Long work leaves the event loop."""
    try:
        await away(call.long, _check_new, call, obj)
    except Lengthy:
        await elsewhere(_check_new, call, obj)


async def validate_update(call: Call, target: Update, new: Object, old: Object) -> None:
    """Validate a changed object. Long work leaves the event loop."""
    try:
        await away(call.long, _check_update, call, target, new, old)
    except Lengthy:
        await elsewhere(_check_update, call, target, new, old)


def _check_new(call: Call, obj: Object) -> None:
    errors = _errors_of_new(call, obj)
    if errors:
        errors = _as_shown(call, errors, obj, lambda shown: _errors_of_new(call, shown))
        name = obj["metadata"].get("name", "")
        raise status.invalid(call.resource.stored_group, call.resource.kind, name, errors)
    context = call.context
    for warning in call.resource.strategy.warnings_on_create(context, obj):
        context.warn(warning)


def _errors_of_new(call: Call, obj: Object) -> list[FieldError]:
    metadata, context, strategy = obj["metadata"], call.context, call.resource.strategy
    namespaced = call.resource.namespaced
    if strategy.lenient_metadata:
        return strategy.validate_create(context, obj) or objectmeta.validate_create(
            metadata, namespaced=namespaced, validate_name=names.path_segment, qualified_finalizers=False
        )
    errors = objectmeta.validate_create(
        metadata,
        namespaced=namespaced,
        validate_name=strategy.name_rule(obj),
        qualified_finalizers=strategy.qualified_finalizers,
    )
    return errors + strategy.validate_create(context, obj)


def _check_update(call: Call, target: Update, new: Object, old: Object) -> None:
    context, resource = call.context, call.resource

    def validated(new: Object) -> list[FieldError]:
        errors = objectmeta.validate_any_update(
            new["metadata"], old["metadata"], namespaced=resource.namespaced
        )
        return errors + target.validate_update(context, new, old)

    errors = validated(new)
    if errors:
        errors = _as_shown(call, errors, new, validated)
        raise status.invalid(resource.stored_group, resource.kind, call.info.name, errors)
    for warning in target.warnings_on_update(context, new, old):
        context.warn(warning)


def _as_shown(
    call: Call, errors: list[FieldError], obj: Object, validate: Callable[[Object], list[FieldError]]
) -> list[FieldError]:
    """Errors whose messages show the empty values that the client sent.

    They come from a second validation, of the object with these values. They are used only if it finds the same
    errors, because a rule may ask whether a field was sent."""
    shown = call.sent.as_shown(obj)
    if shown is obj:
        return errors
    again = validate(shown)
    same = [(error.reason, error.field) for error in again] == [
        (error.reason, error.field) for error in errors
    ]
    return again if same else errors
