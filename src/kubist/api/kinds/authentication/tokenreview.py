"""TokenReview: authenticates a bearer token and returns its user."""

from __future__ import annotations

from kubist.api.resources.context import Context
from kubist.api.resources.strategy import Create, Strategy
from kubist.model.meta.object import Object
from kubist.model.meta.status import bad_request


class TokenReview(Create):
    group = "authentication.k8s.io"
    kind = "TokenReview"
    managed = True

    async def create(self, ctx: Context, body: Object) -> Object:
        spec = body.get("spec") or {}
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        served = ctx.config.api_audiences or ctx.config.service_account_issuer
        audiences = tuple(spec.get("audiences") or served)
        answer = await ctx.objects.authenticate(spec["token"], audiences)
        status = body.setdefault("status", {})
        if answer is None or isinstance(answer, str):
            status.pop("authenticated", None)
            status.setdefault("user", {})
            status["error"] = answer or "invalid bearer token"
            return body
        user, accepted = answer
        status |= {"authenticated": True, "user": user.info(), "audiences": list(accepted)}
        if not accepted:
            del status["audiences"]
        return body


class TokenReviewStrategy(Strategy):
    virtual = TokenReview()


strategy = TokenReviewStrategy()
