"""SelfSubjectAccessReview: whether the requesting user may perform an action."""

from __future__ import annotations

from kubist.api.kinds.authorization.reviews import AccessReview
from kubist.api.resources.strategy import Strategy


class SelfSubjectAccessReview(AccessReview):
    kind = "SelfSubjectAccessReview"
    about_others = False


class SelfSubjectAccessReviewStrategy(Strategy):
    virtual = SelfSubjectAccessReview()


strategy = SelfSubjectAccessReviewStrategy()
