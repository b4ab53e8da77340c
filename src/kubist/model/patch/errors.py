"""Errors of patches, as the API errors that clients receive.

The rest of `patch` raises only these errors and does not know requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubist.model.meta.status import APIError


class MalformedPatch(APIError):
    """The document is not a valid patch of its type."""

    def __init__(self, message: str) -> None:
        super().__init__(400, "BadRequest", message)


class PatchFailed(APIError):
    """The patch is valid but does not apply to this object. As in the reference, the message does not say why."""

    def __init__(self, why: str) -> None:
        message = "the server rejected our request due to an error in our request"
        super().__init__(422, "Invalid", message, {})
        self.why = why


class TooManyOperations(APIError):
    def __init__(self, allowed: int, got: int) -> None:
        message = f"The allowed maximum operations in a JSON patch is {allowed}, got {got}"
        super().__init__(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


class UnclassifiedError(APIError):
    """Error without a class in the reference: 500 without a reason."""

    def __init__(self, message: str) -> None:
        super().__init__(500, "", message)


class ApplyConflict(APIError):
    """Other managers own fields of the applied configuration with other values."""

    def __init__(self, message: str, causes: Sequence[dict[str, str]]) -> None:
        super().__init__(409, "Conflict", message, {"causes": list(causes)})
        self.causes = causes
