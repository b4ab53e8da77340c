"""Fault rule: the requests that it matches, and how they fail.

Parsing is strict. Every error names its field, and a rule with an error is not added.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from kubist.model.meta.numerals import unsigned
from kubist.testbench.control_api.body import read
from kubist.testbench.control_api.field_types import (
    YES,
    Count,
    Fields,
    FieldType,
    integer,
    seconds,
    short_text,
)
from kubist.testbench.faults.matching import CRITERIA, LONGEST_TEXT, Criteria, ResourcePattern

LONGEST = 3600.0
"""Longest delay or pause in seconds."""
READS = ("get", "list", "watch")
LEASES = ResourcePattern.parse("leases.coordination.k8s.io")
ON_WATCHES = ("cutAfter", "pause", "withholdBookmarks", "delayEvents")
AFTERWARDS = ("delayAfter", "truncate")
ACTIONS = ("status", "delay", "close", *AFTERWARDS, *ON_WATCHES, "staleRead", "expireHistory", "takeLease")
COMPANIONS = {
    "reason": "status",
    "message": "status",
    "retryAfter": "status",
    "leaseDuration": "takeLease",
    "seed": "probability",
}
"""Fields that need another field."""


def _duration(about: str) -> FieldType:
    about += " A duration such as 500ms or 2s, or a number of seconds; real time, at most 1h."
    return seconds(LONGEST, "must be longer than 0 and at most 1h", about)


def resource_version(value: Any) -> int | None:
    """Resource version of `staleRead`: 0 for true, which stands for the newest. None if it is malformed."""
    if value is True:
        return 0
    version = unsigned(value) if isinstance(value, str) else None
    return version if isinstance(version, int) and version > 0 else None


def _stale_version(value: Any) -> int:
    version = resource_version(value)
    if version is None:
        raise ValueError("must be true, or a resource version as a string")
    return version


STALE = FieldType(
    {"oneOf": [{"type": "boolean", "enum": [True]}, {"type": "string"}]}, convert=_stale_version
)
WORDS = short_text(LONGEST_TEXT)


class FaultRule(Criteria):
    """Spares clients whose User-Agent begins with kubist-testing, unless it names user agents."""

    reason: Annotated[str, WORDS, "Reason of the Status."] = ""
    message: Annotated[str, WORDS, "Message of the Status."] = ""
    retry_after: Annotated[float, _duration("Sets Retry-After, in whole seconds.")] = 0.0
    status: Annotated[int | None, integer(400, 599), "Returns this error."] = None
    delay: Annotated[float, _duration("Waits before the request takes effect.")] = 0.0
    delay_after: Annotated[float, _duration("Waits after the request took effect, before the response.")] = (
        0.0
    )
    close: Annotated[
        Literal["before", "after"] | None,
        "Closes the connection before or after the request takes effect, without a response.",
    ] = None
    truncate: Annotated[Count | None, "Sends only so many bytes of the body, then closes the connection."] = (
        None
    )
    cut_after: Annotated[Count | None, "Cuts a watch after so many events; 0 cuts it now."] = None
    pause: Annotated[float, _duration("Holds the events of a watch for a time.")] = 0.0
    withhold_bookmarks: Annotated[bool, YES, "Sends no periodic bookmarks on a watch."] = False
    delay_events: Annotated[float, _duration("Sends each event of a watch later.")] = 0.0
    stale_read: Annotated[
        int | None,
        STALE,
        "Serves reads from this resource version; true: the newest when the rule is added.",
    ] = None
    expire_history: Annotated[
        bool, YES, "Expires all resource versions so far: 410 for watches and lists from them."
    ] = False
    take_lease: Annotated[
        str, WORDS, "Makes this holder take over the Lease that namespace and name give."
    ] = ""
    lease_duration: Annotated[
        float, _duration("Duration of the taken Lease, in whole seconds; 15s by default.")
    ] = 15.0

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.at_once = False
        """Whether expireHistory and takeLease act when the rule is added instead of before matching requests."""
        self.on_requests = True
        """Whether it acts on requests."""
        self.spares_tests = not self.user_agent and not (
            self.expression is not None and self.expression.selects("request", "userAgent")
        )
        """Whether it does not act on the helpers of a test."""

    @property
    def on_watches(self) -> bool:
        """Whether it acts on the stream of a watch."""
        return bool(self.cut_after is not None or self.pause or self.withhold_bookmarks or self.delay_events)


class FaultState(FaultRule):
    id: str
    matches: Annotated[Count, "Requests that matched."]
    hits: Annotated[Count, "Requests and watches on which the rule acted."]


def parse_rule(fields: Fields) -> FaultRule:
    """Rule of a JSON object. Raises 422 with all errors."""
    present = {name for name in (*ACTIONS, *COMPANIONS, *CRITERIA) if name in fields}
    _check_combination(fields, present)
    rule = read(fields, FaultRule)
    rule.at_once = (rule.expire_history or bool(rule.take_lease)) and "verb" not in present
    rule.on_requests = not rule.at_once or bool(present & set(ACTIONS) - {"expireHistory", "takeLease"})
    _add_default_match(rule)
    if not rule.on_requests:
        _check_at_once(fields, rule, present)
    if rule.take_lease:
        for name, pattern in (("namespace", rule.namespace), ("name", rule.name)):
            if len(pattern) != 1 or "*" in pattern[0]:
                fields.require(name, "takeLease needs the namespace and the name of one Lease")
    if rule.on_watches and "watch" not in rule.verb:
        action = next(name for name in ON_WATCHES if name in present)
        fields.reject("verb", list(rule.verb), f"must include watch, because {action} acts on watches")
    if rule.stale_read is not None and not set(rule.verb) <= set(READS):
        fields.reject("verb", list(rule.verb), "must be get, list or watch, because staleRead acts on reads")
    fields.done()
    return rule


def _add_default_match(rule: FaultRule) -> None:
    """Adds the verbs and resources of a rule that names none."""
    if not rule.verb and rule.on_watches:
        rule.verb = ("watch",)
    elif not rule.verb and rule.stale_read is not None:
        rule.verb = READS
    if not rule.resource and rule.take_lease:
        rule.resource = (LEASES,)


def _check_combination(fields: Fields, present: set[str]) -> None:
    """Rejects a rule without an action, and fields that contradict each other."""
    if not present & set(ACTIONS):
        fields.require("status", f"the rule has no action, which is one of {', '.join(ACTIONS)}")
    for name, needed in COMPANIONS.items():
        if name in present and needed not in present:
            fields.forbid(name, f"needs {needed}")

    def forbid(first: str, others: tuple[str, ...]) -> None:
        for name in others:
            if first in present and name in present:
                fields.forbid(name, f"must not be set together with {first}")

    forbid("status", ("close", *AFTERWARDS, *ON_WATCHES, "staleRead"))
    forbid("truncate", ("close", *ON_WATCHES))
    forbid("close", (*ON_WATCHES,))
    forbid("delayAfter", ON_WATCHES)
    if fields.peek("close") == "before":
        forbid("close", ("delayAfter", "staleRead"))
    chances = tuple(name for name in ("nth", "every", "probability") if name in present)
    if chances:
        forbid(chances[0], chances[1:])


def _check_at_once(fields: Fields, rule: FaultRule, present: set[str]) -> None:
    """Rejects criteria of requests in a rule that acts once, when it is added."""
    action = "takeLease" if rule.take_lease else "expireHistory"
    for name in CRITERIA:
        if name in present and not (rule.take_lease and name in ("namespace", "name")):
            fields.forbid(name, f"needs verb, because {action} without verb acts at once")
