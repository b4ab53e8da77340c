"""Why a patch was refused, each refusal as the API error that clients see.

The rest of `patch` raises only these; it knows nothing of requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubist.meta.status import APIError


class MalformedPatch(APIError):
    """The document is no patch of its type."""

    def __init__(self, message: str) -> None:
        super().__init__(400, "BadRequest", message)


class PatchFailed(APIError):
    """A well-formed patch that does not apply to this object. Clients are not told which part of it."""

    def __init__(self, why: str) -> None:
        message = "the server rejected our request due to an error in our request"
        super().__init__(422, "Invalid", message, {})
        self.why = why


class TooManyOperations(APIError):
    def __init__(self, allowed: int, got: int) -> None:
        message = f"The allowed maximum operations in a JSON patch is {allowed}, got {got}"
        super().__init__(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


class UnclassifiedError(APIError):
    """What the reference does not classify: 500 without a reason."""

    def __init__(self, message: str) -> None:
        super().__init__(500, "", message)


class ApplyConflict(APIError):
    """Fields of the applied configuration belong to other managers, with other values."""

    def __init__(self, message: str, causes: Sequence[dict[str, str]]) -> None:
        super().__init__(409, "Conflict", message, {"causes": list(causes)})
        self.causes = causes
