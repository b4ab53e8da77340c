"""MutatingAdmissionPolicy: evaluates mutating policies one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from kubist.api.admission.admission_request import AdmissionRequest, Target
from kubist.api.admission.managedfields import keep_valid
from kubist.api.admission.matching import exempt
from kubist.api.admission.plugin import CONNECT, CREATE, UPDATE, Pending, Plugin, forbidden
from kubist.api.admission.policies import params
from kubist.api.admission.policies.authorizer import Decisions
from kubist.api.admission.policies.definitions import Binding, Bound, PolicyBindings
from kubist.api.admission.policies.evaluation import Evaluation, Failed
from kubist.api.admission.policies.mutating import MutatingPolicy
from kubist.api.admission.policies.params import Misconfigured
from kubist.api.resources.context import Context
from kubist.api.resources.reinvocation import Reinvocation
from kubist.base.jsontext.errors import DecodeError
from kubist.model.meta import status
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.objectstore.registry import Registry

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
        keep_valid(ctx, managers, new)
        ctx.reinvocation.round(NAME).output = orjson.loads(orjson.dumps(new))
        pass_.settle()


class _Invocation:
    """Policy with one binding and one parameter object."""

    def __init__(
        self, policy: MutatingPolicy, binding: Binding, target: Target, given: Object | None
    ) -> None:
        self.policy = policy
        self.binding = binding
        self.target = target
        self.given = given
        metadata = (given or {}).get("metadata") or {}
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
        """(message, reason) of errors of policies whose failurePolicy is Fail."""

    def collect(self, policy: MutatingPolicy, bindings: list[Binding]) -> None:
        """Adds an invocation of the policy for each matching binding and parameter."""
        try:
            target = policy.criteria.match(self.request)
            if target is None:
                return
            resource = params.find_kind(self._ctx, policy.param_kind)
        except (Misconfigured, status.APIError) as error:
            self._error(policy, None, f"failed to configure policy: {error}")
            return
        for binding in bindings:
            try:
                if binding.match(self.request) is None:
                    continue
                found = params.collect(self._ctx, resource, binding.param_ref, self.request.namespace)
            except (Misconfigured, status.APIError) as error:
                self._error(policy, binding, f"failed to configure binding: {error}")
                continue
            self._due += [_Invocation(policy, binding, target, given) for given in found]

    async def run(self) -> None:
        held = self._round
        if self._rounds.again and held.output != self.request.new:
            held.changed()
        for invocation in self._due:
            policy = invocation.policy
            try:
                if not await policy.conditions.hold(await self._evaluation(invocation)):
                    continue
            except Failed as error:
                self._error(policy, invocation.binding, str(error), "Invalid")
                continue
            if self._rounds.again and invocation.key not in held.due:
                continue
            if await self._mutate(invocation):
                held.changed()
                self._rounds.wanted = True
            if policy.reinvocable:
                held.called.add(invocation.key)

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
            params=invocation.given,
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
