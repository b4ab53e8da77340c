"""Fault rule: which requests it matches and how they fail, parsed from JSON.

Parsing is strict. Every error names its field, and a rule with an error is not added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubist.model.meta.numerals import unsigned
from kubist.testbench.control_api.call import Fields
from kubist.testbench.faults.matching import Criteria, parse_criteria

LONGEST = 3600.0
"""Longest delay or pause in seconds."""
LONGEST_TEXT = 10_000
"""Longest reason, message or holder name in characters."""
READS = ("get", "list", "watch")
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


@dataclass(slots=True, frozen=True)
class Failure:
    """Status that a request gets. An empty reason or message is that of the reference."""

    code: int
    reason: str = ""
    message: str = ""
    retry_after: int = 0


@dataclass(slots=True, frozen=True)
class Actions:
    """Effects of a rule on a matching request. Times are in seconds."""

    failure: Failure | None = None
    delay: float = 0.0
    delay_after: float = 0.0
    close: str = ""
    """`before` or `after`: closes the connection before or after the write takes effect."""
    truncate: int | None = None
    """Bytes of the body that are sent."""
    cut_after: int | None = None
    """Number of events after which a watch is cut."""
    pause: float = 0.0
    withhold_bookmarks: bool = False
    delay_events: float = 0.0
    stale_read: int | None = None
    """Resource version that reads are served from. 0: the newest when the rule is added."""
    expire_history: bool = False
    take_lease: str = ""
    """Holder that takes the Lease over."""
    lease_duration: int = 15

    @property
    def ends(self) -> bool:
        """Whether the request ends here, without taking effect."""
        return self.failure is not None or self.close == "before"

    @property
    def on_watches(self) -> bool:
        """Whether it acts on the stream of a watch."""
        return bool(self.cut_after is not None or self.pause or self.withhold_bookmarks or self.delay_events)


@dataclass(slots=True, frozen=True)
class Rule:
    """Parsed rule."""

    criteria: Criteria
    actions: Actions
    at_once: bool
    """Whether expireHistory and takeLease act when the rule is added. Otherwise they act before matching requests."""
    on_requests: bool
    """Whether it acts on requests."""


def parse(asked: Fields) -> Rule:
    """Rule of a JSON object. Raises 422 with all errors."""
    given = {name for name in (*ACTIONS, *COMPANIONS, "verb", "name", "namespace") if name in asked}
    _check_combination(asked, given)
    actions = _actions(asked)
    criteria = parse_criteria(asked, *_default_match(actions))
    at_once = (actions.expire_history or bool(actions.take_lease)) and "verb" not in given
    on_requests = not at_once or bool(given & set(ACTIONS) - {"expireHistory", "takeLease"})
    if not on_requests:
        _check_at_once(asked, criteria, actions)
    if actions.take_lease:
        for name, pattern in (("namespace", criteria.namespaces), ("name", criteria.names)):
            if len(pattern) != 1 or "*" in pattern[0]:
                asked.require(name, "takeLease needs the namespace and the name of one Lease")
    if actions.on_watches and "watch" not in criteria.verbs:
        asked.reject(
            "verb",
            list(criteria.verbs),
            f"must include watch, because {_named(given, ON_WATCHES)} acts on watches",
        )
    if actions.stale_read is not None and not set(criteria.verbs) <= set(READS):
        asked.reject(
            "verb", list(criteria.verbs), "must be get, list or watch, because staleRead acts on reads"
        )
    asked.done()
    return Rule(criteria, actions, at_once, on_requests)


def _default_match(actions: Actions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Verbs and resources of a rule that names none."""
    verbs: tuple[str, ...] = ()
    if actions.on_watches:
        verbs = ("watch",)
    elif actions.stale_read is not None:
        verbs = READS
    return verbs, ("leases.coordination.k8s.io",) if actions.take_lease else ()


def _actions(asked: Fields) -> Actions:
    return Actions(
        failure=_failure(asked),
        delay=_duration(asked, "delay"),
        delay_after=_duration(asked, "delayAfter"),
        close=_choice(asked, "close", ("before", "after")),
        truncate=_count(asked, "truncate"),
        cut_after=_count(asked, "cutAfter"),
        pause=_duration(asked, "pause"),
        withhold_bookmarks=_true(asked, "withholdBookmarks"),
        delay_events=_duration(asked, "delayEvents"),
        stale_read=_version(asked),
        expire_history=_true(asked, "expireHistory"),
        take_lease=_text(asked, "takeLease"),
        lease_duration=max(1, round(_duration(asked, "leaseDuration", 15.0))),
    )


def _check_combination(asked: Fields, given: set[str]) -> None:
    """Rejects a rule without an action, and actions that contradict each other."""
    if not given & set(ACTIONS):
        asked.require("status", f"the rule has no action, which is one of {', '.join(ACTIONS)}")
    for name, needed in COMPANIONS.items():
        if name in given and needed not in asked:
            asked.forbid(name, f"needs {needed}")

    def forbid(first: str, others: tuple[str, ...]) -> None:
        for name in others:
            if first in given and name in given:
                asked.forbid(name, f"must not be set together with {first}")

    forbid("status", ("close", *AFTERWARDS, *ON_WATCHES, "staleRead"))
    forbid("truncate", ("close", *ON_WATCHES))
    forbid("close", (*ON_WATCHES,))
    forbid("delayAfter", ON_WATCHES)
    if asked.peek("close") == "before":
        forbid("close", ("delayAfter", "staleRead"))


def _check_at_once(asked: Fields, criteria: Criteria, actions: Actions) -> None:
    """Rejects criteria of requests in a rule that acts once, when it is added."""
    action = "takeLease" if actions.take_lease else "expireHistory"
    for name in criteria.given:
        if not (actions.take_lease and name in ("namespace", "name")):
            asked.forbid(name, f"needs verb, because {action} without verb acts at once")


def _failure(asked: Fields) -> Failure | None:
    reason, message = _text(asked, "reason"), _text(asked, "message")
    wait = _duration(asked, "retryAfter")
    if "status" not in asked:
        return None
    code = asked.integer("status", 500, least=400)
    if code > 599:
        asked.reject("status", code, "must be at most 599")
    return Failure(code, reason, message, -int(-wait // 1))


def _duration(asked: Fields, name: str, default: float = 0.0) -> float:
    value = asked.peek(name)
    found = asked.seconds(name)
    if found is None:
        return default
    if not 0 < found <= LONGEST:
        asked.reject(name, value, "must be longer than 0 and at most 1h")
    return found


def _count(asked: Fields, name: str) -> int | None:
    return asked.integer(name) if asked.peek(name) is not None else asked.take(name)


def _text(asked: Fields, name: str) -> str:
    if asked.peek(name) == "":
        asked.reject(name, "", "must not be empty")
    text = asked.text(name)
    if len(text) > LONGEST_TEXT:
        asked.reject(name, text[:50], f"must have at most {LONGEST_TEXT} characters")
    return text


def _choice(asked: Fields, name: str, choices: tuple[str, ...]) -> str:
    present = name in asked
    value = asked.text(name)
    if present and value not in choices:
        asked.reject(name, value, f"must be {' or '.join(choices)}")
    return value


def _true(asked: Fields, name: str) -> bool:
    value = asked.boolean(name)
    if value is False:
        asked.reject(name, value, "must be true: omit the field instead")
    return bool(value)


def resource_version(value: Any) -> int | None:
    """Resource version of `staleRead`: 0 for true, which stands for the newest. None if it is malformed."""
    if value is True:
        return 0
    found = unsigned(value) if isinstance(value, str) else None
    return found if isinstance(found, int) and found > 0 else None


def _version(asked: Fields) -> int | None:
    value = asked.take("staleRead")
    version = resource_version(value)
    if value is not None and version is None:
        asked.reject("staleRead", value, "must be true, or a resource version as a string")
    return version


def _named(given: set[str], names: tuple[str, ...]) -> str:
    return next((name for name in names if name in given), names[0])
