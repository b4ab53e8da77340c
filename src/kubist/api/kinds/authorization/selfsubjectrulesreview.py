"""SelfSubjectRulesReview: all permissions of the requesting user in a namespace."""

from __future__ import annotations

from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Create, Strategy
from kubist.model.meta.object import Object
from kubist.model.meta.status import bad_request


class SelfSubjectRulesReview(Create):
    group = "authorization.k8s.io"
    kind = "SelfSubjectRulesReview"

    async def create(self, ctx: Context, body: Object) -> Object:
        namespace = (body.get("spec") or {}).get("namespace", "")
        if not namespace:
            raise bad_request("no namespace on request")
        rules = await ctx.objects.rules_for(ctx.user, namespace)
        status: Object = {
            "resourceRules": rules.resource_rules,
            "nonResourceRules": rules.non_resource_rules,
            "incomplete": rules.incomplete,
        }
        if rules.error:
            status["evaluationError"] = rules.error
        return {
            "kind": self.kind,
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": {},
            "status": status,
        }


class SelfSubjectRulesReviewStrategy(Strategy):
    virtual = SelfSubjectRulesReview()


strategy = SelfSubjectRulesReviewStrategy()
