"""Type of an API object: its JSON as a dict."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
