"""Error for webhooks whose function failed unnoticed."""

from __future__ import annotations


class WebhookFailed(Exception):
    """Functions of webhooks raised exceptions that the test did not read from `hook.errors`."""

    def __init__(self, reports: list[str]) -> None:
        super().__init__("\n".join(reports).rstrip())
