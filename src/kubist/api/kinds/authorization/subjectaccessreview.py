"""SubjectAccessReview: whether a given user may perform an action."""

from __future__ import annotations

from kubist.api.kinds.authorization.reviews import AccessReview
from kubist.api.resources.strategy import Strategy


class SubjectAccessReview(AccessReview):
    kind = "SubjectAccessReview"


class SubjectAccessReviewStrategy(Strategy):
    virtual = SubjectAccessReview()


strategy = SubjectAccessReviewStrategy()
