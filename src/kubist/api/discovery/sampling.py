"""CPU profile of this process by sampling, in the format of pprof."""

from __future__ import annotations

import gzip
import sys
import threading
import time
from types import CodeType, FrameType

from kubist.model.codec.protobuf_wire import BYTES, VARINT, delimited, tag, varint

INTERVAL = 0.01
"""Seconds between two samples."""
SWITCH = 1e-5
"""Switch interval in seconds. With the usual one, a sample would wait until the event loop is idle."""
DEPTH = 128
"""Maximum number of frames of a stack."""

IN_USE = threading.Lock()
"""Held by the sampler of this process. Servers of one process share its threads and its switch interval."""

Stack = tuple[tuple[CodeType, int], ...]
"""Code and line of each frame, the innermost first."""


class Sampler:
    """Samples the stacks of all other threads in a thread of its own, weighted by the CPU time that each has used.

    The caller must have acquired `IN_USE`. The sampler releases it at its end."""

    def __init__(self) -> None:
        self.samples: dict[Stack, list[int]] = {}
        """Stack → number of samples, nanoseconds of CPU time."""
        self._began = time.time_ns()
        self._stop = threading.Event()
        self._used: dict[int, int] = {}
        self._thread = threading.Thread(target=self._run, name="kubist-profile", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def profile(self) -> bytes:
        """Ends the sampling and returns the profile, compressed."""
        self.stop()
        self._thread.join()
        return gzip.compress(encoded(self.samples, self._began, time.time_ns() - self._began), mtime=0)

    def _run(self) -> None:
        usual = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH)
        try:
            while not self._stop.wait(INTERVAL):
                self._sample()
        finally:
            sys.setswitchinterval(usual)
            IN_USE.release()

    def _sample(self) -> None:
        own = threading.get_ident()
        for thread, frame in sys._current_frames().items():
            if thread == own:
                continue
            used = _cpu_time(thread)
            before = self._used.get(thread, used)
            self._used[thread] = used
            if used > before:
                entry = self.samples.setdefault(_stack(frame), [0, 0])
                entry[0] += 1
                entry[1] += used - before


def _cpu_time(thread: int) -> int:
    """CPU time of a thread in nanoseconds; the time of day where the system does not tell."""
    try:
        return time.clock_gettime_ns(time.pthread_getcpuclockid(thread))
    except (AttributeError, OSError):
        return time.monotonic_ns()


def _stack(frame: FrameType | None) -> Stack:
    found: list[tuple[CodeType, int]] = []
    while frame is not None and len(found) < DEPTH:
        found.append((frame.f_code, frame.f_lineno or 0))
        frame = frame.f_back
    return tuple(found)


def encoded(samples: dict[Stack, list[int]], began: int, nanoseconds: int) -> bytes:
    """Profile message of pprof. https://github.com/google/pprof/blob/main/proto/profile.proto has the numbers."""
    strings: dict[str, int] = {"": 0}
    functions: dict[CodeType, int] = {}
    locations: dict[tuple[CodeType, int], int] = {}

    def text(value: str) -> int:
        return strings.setdefault(value, len(strings))

    def value_type(kind: str, unit: str) -> bytes:
        return _number(1, text(kind)) + _number(2, text(unit))

    out = [_message(1, value_type("samples", "count")), _message(1, value_type("cpu", "nanoseconds"))]
    for stack, (count, cpu) in samples.items():
        for code, line in stack:
            functions.setdefault(code, len(functions) + 1)
            locations.setdefault((code, line), len(locations) + 1)
        ids = b"".join(varint(locations[frame]) for frame in stack)
        out.append(_message(2, _message(1, ids) + _message(2, varint(count) + varint(cpu))))
    for (code, line), number in locations.items():
        where = _number(1, functions[code]) + _number(2, line)
        out.append(_message(4, _number(1, number) + _message(4, where)))
    for code, number in functions.items():
        name = text(code.co_qualname)
        names = _number(2, name) + _number(3, name) + _number(4, text(code.co_filename))
        out.append(_message(5, _number(1, number) + names + _number(5, code.co_firstlineno)))
    out.append(_number(9, began) + _number(10, nanoseconds))
    out.append(_message(11, value_type("cpu", "nanoseconds")) + _number(12, round(INTERVAL * 10**9)))
    return b"".join([*out, *(_message(6, value.encode()) for value in strings)])


def _number(field: int, value: int) -> bytes:
    return tag(field, VARINT) + varint(value)


def _message(field: int, value: bytes) -> bytes:
    return delimited(tag(field, BYTES), value)
