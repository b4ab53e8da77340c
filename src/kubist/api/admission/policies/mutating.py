"""Mutating policy: JSON patches and apply configurations from CEL expressions."""

from __future__ import annotations

import base64
from typing import Any

from kubist.api.admission.policies.definitions import Policy
from kubist.api.admission.policies.evaluation import Evaluation, Expression, Failed
from kubist.api.kinds.admissionregistration.expressions import Environment, Result
from kubist.base.offload import LONG, Lengthy, elsewhere, leave_loop
from kubist.model.cel.ast import Node, StructNode, children
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.patch import jsonpatch
from kubist.model.patch.apply import merge, validate
from kubist.model.patch.apply.typed import Type, type_of
from kubist.model.patch.errors import PatchFailed
from kubist.model.schema.node import Schema


class Mutation:
    """One mutation of a policy."""

    strict = False
    """Whether unknown fields in the result are rejected."""

    def __init__(self, text: str, environment: Environment, result: Result) -> None:
        self._expression = Expression(text, environment, result)
        self._mismatch: str | None = None

    async def value(self, evaluation: Evaluation) -> Any:
        value = await evaluation.value(self._expression)
        if self._mismatch is None:
            self._mismatch = "\n".join(_misnamed(self._expression.node))
        if self._mismatch:
            raise Failed(f"type mismatch: {self._mismatch}")
        try:
            try:
                return to_json(value)
            except Lengthy:
                return await elsewhere(to_json, value)
        except _TooLarge:
            why = f"the value of the mutation exceeds {LARGEST} bytes"
            raise Failed(f"expression '{self._expression.text}' resulted in error: {why}") from None

    async def patched(self, evaluation: Evaluation, obj: Object, schema: Schema) -> Object:
        raise AssertionError("subclasses must override patched")


class JSONPatch(Mutation):
    strict = True

    async def patched(self, evaluation: Evaluation, obj: Object, schema: Schema) -> Object:
        operations = await self.value(evaluation)
        try:
            patched = jsonpatch.apply(obj, jsonpatch.operations(operations, checked=False))
        except PatchFailed as error:
            if error.why.startswith("testing value"):
                return obj
            raise Failed(f"JSON Patch: {error.why}") from None
        except status.APIError as error:
            raise Failed(f"JSON Patch: {error.message}") from None
        if not isinstance(patched, dict):
            raise Failed("JSON Patch: the result is not an object")
        return patched


class ApplyConfiguration(Mutation):
    async def patched(self, evaluation: Evaluation, obj: Object, schema: Schema) -> Object:
        configuration = await self.value(evaluation)
        kind = type_of(schema)
        configuration = {**configuration, "apiVersion": obj["apiVersion"], "kind": obj["kind"]}
        wrong = validate.problems(kind, configuration)
        if wrong:
            why = f"failed to convert patch object to typed object: {wrong}"
            raise Failed(f"error applying patch: {why}")
        atomics = list(_atomics(kind, configuration, ""))
        if atomics:
            why = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
            raise Failed(f"error applying patch: invalid ApplyConfiguration: {why}")
        merged: Object = merge.merge(kind, obj, configuration)
        return merged


class MutatingPolicy(Policy):
    def __init__(self, policy: Object) -> None:
        super().__init__(policy)
        spec = policy.get("spec") or {}
        self.reinvocable = spec.get("reinvocationPolicy") == "IfNeeded"
        environment = Environment(
            params=self.environment.params, patch_types=True, variables=self.environment.variables
        )
        self.mutations: list[Mutation] = []
        for mutation in spec.get("mutations") or ():
            if mutation.get("patchType") == "JSONPatch":
                text = (mutation.get("jsonPatch") or {}).get("expression", "")
                self.mutations.append(JSONPatch(text, environment, "JSONPatch"))
            else:
                text = (mutation.get("applyConfiguration") or {}).get("expression", "")
                self.mutations.append(ApplyConfiguration(text, environment, "ApplyConfiguration"))


LARGEST = 16 << 20
"""Maximum size of the value of a mutation, in characters, and 8 for each element. No larger object can be stored. A
value may be in several places, and is copied to each."""


class _TooLarge(Exception):
    pass


def to_json(value: Any) -> Any:
    """CEL value as JSON."""
    left = LARGEST

    def convert(value: Any) -> Any:
        nonlocal left
        left -= 8
        if isinstance(value, (str, bytes)):
            left -= len(value)
        if left < LARGEST - LONG:
            leave_loop()
            if left < 0:
                raise _TooLarge
        if isinstance(value, dict):
            return {convert(str(key)): convert(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [convert(inner) for inner in value]
        if isinstance(value, bool) or value is None or isinstance(value, (str, float)):
            return value
        if isinstance(value, int):
            return int(value)
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        return str(value)

    return convert(value)


def _atomics(kind: Type, value: Any, path: str) -> Any:
    """Paths of atomic maps and lists, which an apply would replace as a whole."""
    if isinstance(value, dict) and kind.map is not None:
        if kind.map.atomic:
            yield path
        for key, inner in value.items():
            field = kind.map.fields.get(key)
            if field is not None:
                yield from _atomics(field[1], inner, f"{path}.{key}")
    elif isinstance(value, list) and kind.list is not None:
        if kind.list.atomic:
            yield path
        for index, inner in enumerate(value):
            yield from _atomics(kind.list.element, inner, f"{path}[{index}]")


def _misnamed(node: Node) -> list[str]:
    """Type errors of `Object` values whose type name does not match their field path."""
    found = []
    if isinstance(node, StructNode) and node.name.partition(".")[0] == "Object":
        for name, inner in node.fields:
            wanted = f"{node.name}.{name}"
            for struct in _structs(inner):
                if struct.name != wanted:
                    what = f'unexpected type name "{struct.name}", expected "{wanted}"'
                    found.append(f"{what}, which matches field name path from root Object type")
    for child in children(node):
        found += _misnamed(child)
    return found


def _structs(node: Node) -> list[StructNode]:
    """Outermost structs in an expression, without the structs inside them."""
    if isinstance(node, StructNode):
        return [node]
    return [struct for child in children(node) for struct in _structs(child)]
