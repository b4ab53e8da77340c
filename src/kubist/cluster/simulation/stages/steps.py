"""Steps of a Stage: event, finalizers, delete, patch and apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kubist.api.verbs.patch import APPLY, JSON_PATCH, MERGE, STRATEGIC
from kubist.base.jsontext.errors import DecodeError
from kubist.cluster.simulation.stages.fields import Fields
from kubist.cluster.simulation.stages.go_template import Template
from kubist.cluster.simulation.stages.limits import StageError
from kubist.model.codec import yaml
from kubist.model.meta.object import Object

_TYPES = {"json": JSON_PATCH, "merge": MERGE, "strategic": STRATEGIC}
_APPLY_TYPES = {"apply": APPLY, "merge": MERGE, "strategic": STRATEGIC}
_POD = ("NodeIP", "PodIP", "NodeIPWith", "NodeIPsWith", "PodIPWith", "PodIPsWith")
_NODE = ("NodeIP", "NodeName", "NodePort")
FUNCTIONS: dict[tuple[str, str], tuple[str, ...]] = {("v1", "Pod"): _POD, ("v1", "Node"): _NODE}
"""Template functions of a kind, in addition to those of all kinds."""


Environment = Mapping[str, Callable[..., Any]]
"""Functions of templates that depend on the object, the time and the server."""


@dataclass(slots=True, frozen=True)
class SendEvent:
    type: str
    reason: str
    message: str


@dataclass(slots=True, frozen=True)
class ChangeFinalizers:
    add: tuple[str, ...]
    remove: frozenset[str]
    empty: bool

    def changed(self, finalizers: list[str]) -> list[str]:
        kept = [] if self.empty else [name for name in finalizers if name not in self.remove]
        return kept + [name for name in dict.fromkeys(self.add) if name not in kept]


@dataclass(slots=True, frozen=True)
class Delete:
    pass


@dataclass(slots=True, frozen=True)
class Patch:
    """Patch of the object or one of its subresources."""

    template: Template
    type: str
    """Media type of the patch."""
    root: str
    subresource: str
    username: str

    def document(self, data: Object, environment: Environment) -> Any:
        document = rendered(self.template, data, environment)
        if not self.root:
            return document
        if self.type != JSON_PATCH:
            return {self.root: document}
        if not isinstance(document, list) or not all(isinstance(operation, dict) for operation in document):
            raise StageError("the template of a JSON patch must make a list of operations")
        return [{**operation, "path": f"/{self.root}{operation.get('path', '')}"} for operation in document]


@dataclass(slots=True, frozen=True)
class Apply:
    """Creates or changes another object."""

    template: Template
    type: str
    subresource: str
    username: str

    def document(self, data: Object, environment: Environment) -> Object:
        document = rendered(self.template, data, environment)
        metadata = document.get("metadata") if isinstance(document, dict) else None
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            raise StageError("the template of apply must make an object with metadata.name")
        if not isinstance(document.get("apiVersion"), str) or not isinstance(document.get("kind"), str):
            raise StageError("the template of apply must make an object with apiVersion and kind")
        made: Object = document
        return made


Step = SendEvent | ChangeFinalizers | Delete | Patch | Apply


def rendered(template: Template, data: Object, environment: Environment) -> Any:
    """Output of a template, which is YAML, as a JSON value."""
    text = template.render(data, environment)
    try:
        return yaml.parse(text.encode()).value
    except DecodeError as error:
        raise StageError(f"the template made malformed YAML: {error}") from None


def parse_next(spec: Fields, reference: tuple[str, str]) -> list[Step]:
    """Steps of `spec.steps`, else of `spec.next`."""
    items = spec.items("steps")
    following = spec.fields("next")
    if items:
        return [step for item in items for step in _parse_step(item, reference)]
    return [] if following is None else _parse_next(following, reference)


def _parse_next(following: Fields, reference: tuple[str, str]) -> list[Step]:
    steps = _event_and_finalizers(following)
    patches = following.items("patches")
    template = following.text("statusTemplate")
    subresource = following.text("statusSubresource") or "status"
    username = _username(following, "statusPatchAs")
    steps += [_patch(item, reference) for item in patches]
    if template and not patches:
        parsed = following.parse("statusTemplate", lambda text: _template(text, reference))
        steps.append(Patch(parsed, _default_type(reference), "status", subresource, username))
    if following.boolean("delete"):
        steps.append(Delete())
    following.finish()
    return steps


def _parse_step(item: Fields, reference: tuple[str, str]) -> list[Step]:
    steps = _event_and_finalizers(item)
    if item.boolean("delete"):
        steps.append(Delete())
    if (patch := item.fields("patch")) is not None:
        steps.append(_patch(patch, reference))
    if (apply := item.fields("apply")) is not None:
        type_ = apply.choice("type", _APPLY_TYPES) or APPLY
        subresource, username = apply.text("subresource"), _username(apply, "impersonation")
        template = apply.parse("template", lambda text: _template(text, reference))
        apply.finish()
        steps.append(Apply(template, type_, subresource, username))
    item.finish()
    return steps


def _event_and_finalizers(item: Fields) -> list[Step]:
    steps: list[Step] = []
    if (event := item.fields("event")) is not None:
        steps.append(SendEvent(event.text("type") or "Normal", event.text("reason"), event.text("message")))
        event.finish()
    if (finalizers := item.fields("finalizers")) is not None:
        add, remove = _finalizer_names(finalizers, "add"), _finalizer_names(finalizers, "remove")
        steps.append(ChangeFinalizers(tuple(add), frozenset(remove), finalizers.boolean("empty")))
        finalizers.finish()
    return steps


def _finalizer_names(finalizers: Fields, field: str) -> list[str]:
    names = []
    for item in finalizers.items(field):
        names.append(item.text("value"))
        item.finish()
    return names


def _patch(patch: Fields, reference: tuple[str, str]) -> Patch:
    type_ = patch.choice("type", _TYPES) or _default_type(reference)
    root, subresource = patch.text("root"), patch.text("subresource")
    username = _username(patch, "impersonation")
    template = patch.parse("template", lambda text: _template(text, reference))
    patch.finish()
    return Patch(template, type_, root, subresource, username)


def _template(text: str, reference: tuple[str, str]) -> Template:
    return Template(text, FUNCTIONS.get(reference, ()))


def _default_type(reference: tuple[str, str]) -> str:
    return STRATEGIC if reference in FUNCTIONS else MERGE


def _username(fields: Fields, name: str) -> str:
    """User that a patch impersonates; an empty string for none."""
    impersonation = fields.fields(name)
    if impersonation is None:
        return ""
    username = impersonation.text("username")
    impersonation.finish()
    return username
