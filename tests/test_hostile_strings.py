"""Strings that made a regular expression or a parser try every position again cost linear time.

A regular expression of Python holds the GIL, so it blocks every client, also from a worker thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from kubist.api.crd.jsonpath import JsonPath, PathError
from kubist.api.kinds.core.podspec.env import VOLUME_FIELDS, validate_field_ref
from kubist.cluster.simulation.stages.go_template import Template
from kubist.cluster.simulation.stages.jq import Query
from kubist.cluster.simulation.stages.limits import StageError
from kubist.model.cel import formats
from kubist.model.cel.escaping import escape
from kubist.model.codec import negotiate, yaml_emit
from kubist.model.meta import selectors
from kubist.model.meta.status import APIError

COUNT = 4_000
FACTOR = 8
LIMIT = 24.0
"""Maximum ratio of costs for FACTOR times the length. Quadratic work has the square of FACTOR."""
FLOOR = 0.05
"""Seconds of CPU time below which a string is cheap in any case."""


def read_path(text: str) -> None:
    JsonPath(text)


CASES: dict[str, tuple[Callable[[str], Any], str, str, str]] = {
    "digits of a duration": (formats.duration, "", "1", ""),
    "spaces of a duration": (formats.duration, "1", " ", "!"),
    "digits and spaces of a duration": (formats.duration, "", "1 ", ""),
    "routes of an address": (formats.email, "", "@", "!"),
    "angles of an address": (formats.email, "", "<", ""),
    "comments of an address": (formats.email, "", "(", ""),
    "groups of an address": (formats.email, "", "a:", ""),
    "name of a property": (escape, "", "a", "!"),
    "spaces of a Content-Type": (lambda text: negotiate.content_type(text), "application/json;", " ", "!"),
    "spaces of a label selector": (lambda text: selectors.parse_label_selector(text), "a", " ", ""),
    "spaces before a next-line character": (yaml_emit.dumps, "\x85 a", " ", "a"),
    "operators of a filter": (read_path, ".a[?(a", "<", "\n)]"),
    "subscripts of a field path": (
        lambda text: validate_field_ref({"apiVersion": "v1", "fieldPath": text}, VOLUME_FIELDS, "p"),
        "a", "['", "",
    ),
    "spaces in a select of jq": (lambda text: Query(text), "select(.a", " ", "!"),
    "asterisks of a comment in a Go template": (lambda text: Template(text), "{{/*", "*", "!"),
}  # fmt: skip


def cost(case: str, count: int) -> float:
    read, begin, repeated, end = CASES[case]
    text = begin + repeated * count + end
    started = time.process_time()
    with suppress(APIError, PathError, StageError):
        read(text)
    return time.process_time() - started


@pytest.mark.parametrize("case", CASES)
def test_hostile_string_costs_linear_time(case: str) -> None:
    small = min(cost(case, COUNT) for _ in range(3))
    large = min(cost(case, COUNT * FACTOR) for _ in range(3))
    assert large < FLOOR or large / max(small, 0.0001) < LIMIT, (small, large)


def test_comments_in_comments_are_no_address() -> None:
    assert not formats.email("(" * 900 + "a@b")
    assert formats.email("(comment) a@b.c")


@pytest.mark.parametrize(
    ("text", "accepted"), [("5  weeks", True), ("1 x 2 min", True), ("12", False), ("1.5 days", True)]
)
def test_long_durations(text: str, accepted: bool) -> None:
    assert formats.duration(text) is accepted


@pytest.mark.parametrize(
    ("field", "count"),
    [("metadata.labels['a']", 0), ("metadata.labels['a['b']']", 1), ("['a']", 1), ("metadata.labels['a'", 1)],
)
def test_subscripts_of_field_paths(field: str, count: int) -> None:
    assert len(validate_field_ref({"apiVersion": "v1", "fieldPath": field}, VOLUME_FIELDS, "p")) == count
