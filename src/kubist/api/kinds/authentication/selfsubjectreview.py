"""SelfSubjectReview: user info of the requesting user."""

from __future__ import annotations

from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Create, Strategy
from kubist.model.meta.object import Object


class SelfSubjectReview(Create):
    group = "authentication.k8s.io"
    kind = "SelfSubjectReview"

    async def create(self, ctx: Context, body: Object) -> Object:
        return {
            "kind": self.kind,
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": ctx.now},
            "status": {"userInfo": ctx.user.info()},
        }


class SelfSubjectReviewStrategy(Strategy):
    virtual = SelfSubjectReview()


strategy = SelfSubjectReviewStrategy()
