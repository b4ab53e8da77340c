"""MutatingAdmissionPolicy: evaluates mutating policies one after another. CEL expressions produce their mutations,
which are JSON patches and apply configurations."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import orjson

from kubist.api.admission.admission_request import AdmissionRequest, Target, keep_managed_fields_valid
from kubist.api.admission.matching import exempt
from kubist.api.admission.plugin import CONNECT, CREATE, UPDATE, Pending, Plugin, forbidden
from kubist.api.admission.policies.authorizer import Decisions
from kubist.api.admission.policies.definitions import (
    Binding,
    Bound,
    Misconfigured,
    Policy,
    PolicyBindings,
    collect_params,
    find_param_kind,
)
from kubist.api.admission.policies.evaluation import Evaluation, Expression, Failed
from kubist.api.kinds.admissionregistration.expressions import Environment, Result
from kubist.api.resources.context import Context
from kubist.api.resources.reinvocation import Reinvocation
from kubist.base.jsontext.errors import DecodeError
from kubist.base.offload import LONG, Lengthy, elsewhere, leave_loop
from kubist.model.cel.ast import Node, StructNode, children
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.patch import jsonpatch
from kubist.model.patch.apply import merge, validate
from kubist.model.patch.apply.typed import Type, type_of
from kubist.model.patch.errors import PatchFailed
from kubist.model.schema.node import Schema

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry


NAME = "MutatingAdmissionPolicy"


class MutatingAdmissionPolicy(Plugin):
    operations = (CREATE, UPDATE, CONNECT)

    def start(self, registry: Registry) -> None:
        policies, bindings = "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"
        self._definitions = PolicyBindings(registry, policies, bindings, MutatingPolicy)
        self.followed = self._definitions.bindings
        self._resources = registry.resources

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        bound = self._definitions.bound()
        if not bound or new is None or exempt(ctx.resource.kind, ctx.resource.group):
            return None
        return self._mutate(bound, ctx, new, old)

    async def _mutate(
        self, bound: Bound[MutatingPolicy], ctx: Context, new: Object, old: Object | None
    ) -> None:
        if ctx.reinvocation is None:
            ctx.reinvocation = Reinvocation()
        managers = (new.get("metadata") or {}).get("managedFields")
        pass_ = _Pass(AdmissionRequest(ctx, new, old, self._resources), ctx.reinvocation)
        for policy, bindings in bound:
            pass_.collect(policy, bindings)
        await pass_.run()
        pass_.request.check_namespace()
        keep_managed_fields_valid(ctx, managers, new)
        ctx.reinvocation.round(NAME).output = orjson.loads(orjson.dumps(new))
        pass_.settle()


class _Invocation:
    """Policy with one binding and one parameter object."""

    def __init__(
        self, policy: MutatingPolicy, binding: Binding, target: Target, parameter: Object | None
    ) -> None:
        self.policy = policy
        self.binding = binding
        self.target = target
        self.param = parameter
        metadata = (parameter or {}).get("metadata") or {}
        who = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        self.key = f"{policy.name} {binding.name} {who}"


class _Pass:
    """Evaluation of all policies for one request."""

    def __init__(self, request: AdmissionRequest, rounds: Reinvocation) -> None:
        self.request = request
        self._ctx = request.ctx
        self._rounds = rounds
        self._round = rounds.round(NAME)
        self._decisions = Decisions(request.ctx)
        self._due: list[_Invocation] = []
        self._errors: list[tuple[str, str]] = []
        """(message, reason) of each error of a policy with failurePolicy Fail."""

    def collect(self, policy: MutatingPolicy, bindings: list[Binding]) -> None:
        """Adds an invocation of the policy for each matching binding and parameter."""
        try:
            target = policy.criteria.match(self.request)
            if target is None:
                return
            resource = find_param_kind(self._ctx, policy.param_kind)
        except (Misconfigured, status.APIError) as error:
            self._error(policy, None, f"failed to configure policy: {error}")
            return
        for binding in bindings:
            try:
                if binding.match(self.request) is None:
                    continue
                parameters = collect_params(self._ctx, resource, binding.param_ref, self.request.namespace)
            except (Misconfigured, status.APIError) as error:
                self._error(policy, binding, f"failed to configure binding: {error}")
                continue
            self._due += [_Invocation(policy, binding, target, parameter) for parameter in parameters]

    async def run(self) -> None:
        current_round = self._round
        if self._rounds.again and current_round.output != self.request.new:
            current_round.changed()
        for invocation in self._due:
            policy = invocation.policy
            try:
                if not await policy.conditions.hold(await self._evaluation(invocation)):
                    continue
            except Failed as error:
                self._error(policy, invocation.binding, str(error), "Invalid")
                continue
            if self._rounds.again and invocation.key not in current_round.due:
                continue
            if await self._mutate(invocation):
                current_round.changed()
                self._rounds.is_needed = True
            if policy.reinvocable:
                current_round.called.add(invocation.key)

    async def _mutate(self, invocation: _Invocation) -> bool:
        """Applies the policy's mutations in order. Returns whether the object changed."""
        changed = False
        target, request = invocation.target, self.request
        for mutation in invocation.policy.mutations:
            obj, _ = await request.see(target)
            assert obj is not None
            try:
                evaluation = await self._evaluation(invocation)
                patched = await mutation.patched(evaluation, obj, request.schema(target))
                changed |= patched is not obj and await request.replace(
                    patched, target, strict=mutation.strict
                )
            except Failed as error:
                self._error(invocation.policy, invocation.binding, str(error), "Invalid")
            except DecodeError as error:
                raise status.internal_error(str(error)) from None
        return changed

    async def _evaluation(self, invocation: _Invocation) -> Evaluation:
        return await Evaluation.of(
            self.request,
            invocation.target,
            self._decisions,
            params=invocation.param,
            namespace=self.request.namespace_object(),
            variables=invocation.policy.variables,
        )

    def _error(self, policy: MutatingPolicy, binding: Binding | None, why: str, reason: str = "") -> None:
        if policy.ignores_failure:
            return
        who = f"'{policy.name}' with binding '{binding.name}'" if binding is not None else f'"{policy.name}"'
        self._errors.append((f"policy {who} denied request: {why}", reason))

    def settle(self) -> None:
        """Rejects the request if a policy failed."""
        if not self._errors:
            return
        message, reason = self._errors[0]
        error = forbidden(self._ctx, self.request.new, message)
        error.message = message
        error.reason = reason or error.reason
        assert error.details is not None
        error.details["causes"] = [{"message": text} for text, _ in self._errors]
        raise error


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
                return _to_json(value)
            except Lengthy:
                return await elsewhere(_to_json, value)
        except _TooLarge:
            why = f"the value of the mutation exceeds {_LARGEST} bytes"
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


_LARGEST = 16 << 20
"""Maximum size of a mutation's value in characters, plus 8 for each element. No larger object can be stored. A value
that occurs in several places counts in each, because it is copied."""


class _TooLarge(Exception):
    pass


def _to_json(value: Any) -> Any:
    """CEL value as JSON."""
    left = _LARGEST

    def convert(value: Any) -> Any:
        nonlocal left
        left -= 8
        if isinstance(value, (str, bytes)):
            left -= len(value)
        if left < _LARGEST - LONG:
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
    errors = []
    if isinstance(node, StructNode) and node.name.partition(".")[0] == "Object":
        for name, inner in node.fields:
            expected = f"{node.name}.{name}"
            for struct in _structs(inner):
                if struct.name != expected:
                    what = f'unexpected type name "{struct.name}", expected "{expected}"'
                    errors.append(f"{what}, which matches field name path from root Object type")
    for child in children(node):
        errors += _misnamed(child)
    return errors


def _structs(node: Node) -> list[StructNode]:
    """Outermost structs in an expression, without the structs inside them."""
    if isinstance(node, StructNode):
        return [node]
    return [struct for child in children(node) for struct in _structs(child)]
