"""Outcomes of simulated pods: the grammar of the annotations `kubist.io/outcome` and `kubist.io/outcome.NAME`.

An outcome is a list of clauses, separated by commas:

    run
    succeed [after DURATION]
    fail [CODE] [reason REASON] [after DURATION] [times N]
    crash-loop [CODE] [after DURATION]
    OOMKilled [after DURATION] [times N]
    ErrImagePull
    CreateContainerConfigError
    never-ready
    ready after DURATION
    slow-termination DURATION
    evicted [after DURATION]

Words are not case-sensitive. Durations have Go's form, such as `1.5s` or `2m`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from kubist.base.caching import bounded_cache
from kubist.base.hints import did_you_mean
from kubist.model.meta import durations
from kubist.model.meta.object import Object

ANNOTATION = "kubist.io/outcome"
OOM_KILLED = 137
MOST_PROBLEMS = 10
"""Maximum number of faults that are reported for one pod."""
LONGEST_SHOWN = 100
"""Maximum characters of a malformed word that a message shows."""
_REASON = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")


@dataclass(frozen=True, slots=True)
class Exit:
    """Scripted end of a container's run."""

    code: int
    reason: str = ""
    """Empty: Completed for code 0, else Error."""
    after: float = 0.0
    """Seconds after the start of the run."""
    times: int = 0
    """Number of runs that end so; later runs are not scripted. 0: all runs."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Scripted behaviour of a container, or of all containers of a pod. None: not scripted."""

    exit: Exit | None = None
    runs: bool = False
    """Whether the container runs until it is stopped, whatever its command is."""
    start: str | None = None
    """ErrImagePull or CreateContainerConfigError: the container never starts."""
    ready_after: float | None = None
    """Seconds after the start of the run. Infinity: never."""
    stops_after: float | None = None
    """Seconds that the container takes to stop."""
    evicted_after: float | None = None
    """Seconds after the start of the pod."""

    def __str__(self) -> str:
        return ", ".join(_clauses(self))

    def without(self, *aspects: str) -> Outcome:
        """This outcome without some of its aspects, which are names of fields."""
        return replace(self, **{name: _DEFAULTS[name] for name in aspects})


_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Outcome)}
DEFAULT = Outcome()
ENDINGS = ("exit", "runs", "start")
"""Aspects that contradict each other."""


def outcome_of(pod: Object, container: str) -> Outcome:
    """Outcome of a regular container: the annotation of the container, else that of the pod. Malformed annotations
    count as absent."""
    annotations = pod["metadata"].get("annotations")
    if not annotations:
        return DEFAULT
    return _readable(annotations.get(f"{ANNOTATION}.{container}", annotations.get(ANNOTATION)))


def own_outcome_of(pod: Object, container: str) -> Outcome:
    """Outcome of an init or ephemeral container, for which the pod's annotation does not count."""
    annotations = pod["metadata"].get("annotations")
    return _readable(annotations.get(f"{ANNOTATION}.{container}")) if annotations else DEFAULT


def pod_outcome(pod: Object) -> Outcome:
    """Outcome that the pod's own annotation gives."""
    annotations = pod["metadata"].get("annotations")
    return _readable(annotations.get(ANNOTATION)) if annotations else DEFAULT


def problems(pod: Object) -> list[str]:
    """Faults of the outcome annotations of a pod."""
    annotations = pod["metadata"].get("annotations") or {}
    messages: list[str] = []
    spec = pod["spec"]
    names: list[str] = []
    for key, text in annotations.items():
        if key != ANNOTATION and not key.startswith(f"{ANNOTATION}."):
            continue
        container = key.removeprefix(ANNOTATION).removeprefix(".")
        if len(messages) >= MOST_PROBLEMS:
            break
        names = names or [
            entry["name"]
            for part in ("initContainers", "containers", "ephemeralContainers")
            for entry in spec.get(part) or ()
        ]
        if container and container not in names:
            hint = did_you_mean(container, names)
            messages.append(f'annotation {key}: the pod has no container "{container}"{hint}')
            continue
        try:
            outcome = parse_outcome(text)
        except ValueError as error:
            messages.append(f"annotation {key}: {error}")
        else:
            if container and outcome.evicted_after is not None:
                messages.append(f"annotation {key}: only the whole pod can be evicted; use {ANNOTATION}")
    return messages


def _readable(text: str | None) -> Outcome:
    if not text:
        return DEFAULT
    try:
        return parse_outcome(text)
    except ValueError:
        return DEFAULT


@bounded_cache(entries=1024, key_length=1024)
def parse_outcome(text: str) -> Outcome:
    """Outcome of an annotation. ValueError if it is malformed."""
    outcome = DEFAULT
    for clause in text.split(","):
        words = clause.split()
        if not words:
            raise ValueError('a clause is empty; write for example "fail 3 after 10s"')
        read = _CLAUSES.get(words[0].lower().replace("-", ""))
        if read is None:
            raise ValueError(
                f'"{words[0][:LONGEST_SHOWN]}" is not an outcome{did_you_mean(words[0], CLAUSES)}'
            )
        aspect, value = read(words[0], words[1:])
        taken = ENDINGS if aspect in ENDINGS else (aspect,)
        if any(getattr(outcome, name) != _DEFAULTS[name] for name in taken):
            raise ValueError(f'"{clause.strip()[:LONGEST_SHOWN]}" contradicts an earlier clause')
        outcome = replace(outcome, **{aspect: value})
    return outcome


def _clauses(outcome: Outcome) -> list[str]:
    clauses = []
    if outcome.runs:
        clauses.append("run")
    if outcome.exit is not None:
        clauses.append(_exit_text(outcome.exit))
    if outcome.start is not None:
        clauses.append(outcome.start)
    if outcome.ready_after is not None:
        never = math.isinf(outcome.ready_after)
        clauses.append("never-ready" if never else f"ready after {durations.written(outcome.ready_after)}")
    if outcome.stops_after is not None:
        clauses.append(f"slow-termination {durations.written(outcome.stops_after)}")
    if outcome.evicted_after is not None:
        clauses.append("evicted" + _after_text(outcome.evicted_after))
    return clauses


def _exit_text(end: Exit) -> str:
    text = f"fail {end.code}" if end.code else "succeed"
    if end.reason:
        text += f" reason {end.reason}"
    text += _after_text(end.after)
    return f"{text} times {end.times}" if end.times else text


def _after_text(seconds: float) -> str:
    return f" after {durations.written(seconds)}" if seconds else ""


Clause = tuple[str, Any]
"""Name of a field of `Outcome`, and its value."""


def _read_succeed(name: str, words: list[str]) -> Clause:
    options = _options(name, words, "after")
    return "exit", Exit(0, after=options.after)


def _read_fail(name: str, words: list[str]) -> Clause:
    code = 1
    if words and words[0].isascii() and words[0].isdigit():
        code = _number(name, words[0], 1, 255, "an exit code from 1 to 255")
        words = words[1:]
    options = _options(name, words, "reason", "after", "times")
    return "exit", Exit(code, options.reason, options.after, options.times)


def _read_crash_loop(name: str, words: list[str]) -> Clause:
    if "times" in words or "reason" in words:
        raise ValueError(f'{name} takes an exit code and "after"; use fail for the rest')
    return _read_fail(name, words)


def _read_oom_killed(name: str, words: list[str]) -> Clause:
    options = _options(name, words, "after", "times")
    return "exit", Exit(OOM_KILLED, "OOMKilled", options.after, options.times)


def _read_run(name: str, words: list[str]) -> Clause:
    _options(name, words)
    return "runs", True


def _read_image_error(name: str, words: list[str]) -> Clause:
    _options(name, words)
    return "start", "ErrImagePull"


def _read_config_error(name: str, words: list[str]) -> Clause:
    _options(name, words)
    return "start", "CreateContainerConfigError"


def _read_never_ready(name: str, words: list[str]) -> Clause:
    _options(name, words)
    return "ready_after", math.inf


def _read_ready(name: str, words: list[str]) -> Clause:
    if words[:1] != ["after"]:
        raise ValueError('ready needs a delay, such as "ready after 5s"')
    return "ready_after", _options(name, words, "after").after


def _read_slow_termination(name: str, words: list[str]) -> Clause:
    if len(words) != 1:
        raise ValueError(f'{name} needs one duration, such as "{name} 20s"')
    return "stops_after", _duration(words[0])


def _read_evicted(name: str, words: list[str]) -> Clause:
    return "evicted_after", _options(name, words, "after").after


CLAUSES: dict[str, Callable[[str, list[str]], Clause]] = {
    "run": _read_run,
    "succeed": _read_succeed,
    "fail": _read_fail,
    "crash-loop": _read_crash_loop,
    "OOMKilled": _read_oom_killed,
    "ErrImagePull": _read_image_error,
    "ImagePullBackOff": _read_image_error,
    "CreateContainerConfigError": _read_config_error,
    "never-ready": _read_never_ready,
    "ready": _read_ready,
    "slow-termination": _read_slow_termination,
    "evicted": _read_evicted,
}
_CLAUSES = {name.lower().replace("-", ""): read for name, read in CLAUSES.items()}


@dataclass(slots=True)
class _Options:
    after: float = 0.0
    reason: str = ""
    times: int = 0


def _options(name: str, words: list[str], *allowed: str) -> _Options:
    """Options of a clause: a word and its value each."""
    options, seen = _Options(), set()
    for at in range(0, len(words), 2):
        option = words[at].lower()
        if option not in allowed:
            expected = " or ".join(f'"{word}"' for word in allowed) or "nothing"
            raise ValueError(f'"{words[at][:LONGEST_SHOWN]}" cannot follow {name}; expected {expected}')
        if at + 1 == len(words) or option in seen:
            raise ValueError(f'{name} needs one value of "{option}"')
        seen.add(option)
        value = words[at + 1]
        if option == "after":
            options.after = _duration(value)
        elif option == "times":
            options.times = _number(name, value, 1, 1_000_000, "a number of runs from 1 to 1000000")
        else:
            if not _REASON.fullmatch(value):
                raise ValueError(
                    f'"{value[:LONGEST_SHOWN]}" is not a reason; use letters and digits, such as OOMKilled'
                )
            options.reason = value
    return options


def _number(name: str, text: str, least: int, most: int, meaning: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise ValueError(f'"{text[:LONGEST_SHOWN]}" is not {meaning} of {name}')
    return int(text)


def _duration(text: str) -> float:
    try:
        return durations.seconds(text)
    except ValueError:
        raise ValueError(f'"{text[:LONGEST_SHOWN]}" is not a duration; write for example 10s or 2m') from None
