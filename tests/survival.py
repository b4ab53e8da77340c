"""Real server that is killed repeatedly under writers and a watch, and checks after each restart.

Every writer has its own objects, so their state and events follow from its acknowledged writes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.client
import json
import random
import signal
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cli.processes import Running, running
from tests.live import TOKENS
from tests.waiting import wait_for

WRITERS = 16
NAMES = 4
MAPS = "/api/v1/namespaces/default/configmaps"
READY = r"serving on 127\.0\.0\.1:(\d+)"
FLAGS = ("--secure-port=0", "--bind-address=127.0.0.1", "--cert-dir=certs", "--token-auth-file=tokens")
PATIENCE = 300.0
"""Seconds. Long, because the test does not judge speed and the machine may be busy."""
WRITING = 5.0
"""Maximum seconds of writing per server."""

Told = tuple[str | None, int]
"""Value of a name (None: deleted) and its resourceVersion."""


def content(value: str, dice: random.Random) -> dict[str, str]:
    """Data with a checksum part."""
    pad = "x" * dice.randrange(2000)
    return {"v": value, "pad": pad, "sum": hashlib.sha256(f"{value}{pad}".encode()).hexdigest()}


def whole(obj: dict[str, Any]) -> str:
    """Value of an object whose parts belong together."""
    data = obj["data"]
    value: str = data["v"]
    assert data["sum"] == hashlib.sha256(f"{value}{data['pad']}".encode()).hexdigest(), obj
    return value


@functools.cache
def trust(home: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(home / "certs/apiserver.crt"))


class Connection:
    def __init__(self, home: Path, port: int) -> None:
        self._http = http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=trust(home))

    def send(self, method: str, path: str, body: Any = None) -> http.client.HTTPResponse:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": "Bearer admin-token", "Content-Type": kind}
        self._http.request(method, path, json.dumps(body) if body is not None else None, headers)
        return self._http.getresponse()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = self.send(method, path, body)
        return answer.status, json.loads(answer.read())

    def close(self) -> None:
        self._http.close()


@contextlib.contextmanager
def connected(worker: Writer | Follower, home: Path, port: int) -> Iterator[Connection]:
    """A connection that ends with the server. A failed assertion becomes the problem of the worker."""
    connection = Connection(home, port)
    try:
        yield connection
    except AssertionError as problem:
        worker.problem = str(problem)
    except (OSError, http.client.HTTPException, ValueError):
        return
    finally:
        connection.close()


class Writer:
    """Creates, updates, patches and deletes until the server is killed."""

    def __init__(self, number: int) -> None:
        self.held: dict[str, Told] = {f"w{number}-{index}": (None, 0) for index in range(NAMES)}
        self.answered: list[tuple[str, str | None]] = []
        """Acknowledged changes since the last check: name and new value."""
        self.versions: list[int] = []
        self.doubt: tuple[str, str | None] | None = None
        """Change that was sent and not acknowledged."""
        self.refused = 0
        self.problem: str | None = None
        self._dice = random.Random()

    def write(self, home: Path, port: int) -> None:
        with connected(self, home, port) as connection:
            while True:
                self._step(connection)

    def _step(self, connection: Connection) -> None:
        dice = self._dice
        name = dice.choice(list(self.held))
        value, version = self.held[name]
        new: str | None = f"{time.monotonic_ns()}"
        chance = dice.random()
        obj: dict[str, Any] = {"metadata": {"name": name}, "data": content(new or "", dice)}
        where, expected = f"{MAPS}/{name}", 200
        if value is None:
            method, where, expected = "POST", MAPS, 201
        elif chance < 0.15:
            method, new = "DELETE", None
        elif chance < 0.5:
            method = "PATCH"
        else:
            method = "PUT"
            stale = chance > 0.9
            obj["metadata"]["resourceVersion"] = str(version - stale)
            if stale:
                expected, new = 409, value
        self.doubt = (name, new) if expected != 409 else None
        code, answer = connection.ask(method, where, None if method == "DELETE" else obj)
        assert code == expected, (code, answer)
        self.doubt = None
        if code == 409:
            self.refused += 1
            return
        if method != "DELETE":
            version = int(answer["metadata"]["resourceVersion"])
            self.versions.append(version)
        self.held[name] = (new, version)
        self.answered.append((name, new))


class Follower:
    """One watch across all restarts. Each time it resumes from the last resourceVersion it has seen."""

    def __init__(self) -> None:
        self.version = 0
        self.held: dict[str, Told] = {}
        self.events: list[tuple[str, str | None]] = []
        """Events since the last check: name and new value."""
        self.problem: str | None = None

    def follow(self, home: Path, port: int) -> None:
        with connected(self, home, port) as connection:
            query = f"watch=1&allowWatchBookmarks=true&resourceVersion={self.version}"
            response = connection.send("GET", f"{MAPS}?{query}")
            while line := response.readline():
                self._take(json.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        kind, obj = event["type"], event["object"]
        assert kind != "ERROR", event
        version = int(obj["metadata"]["resourceVersion"])
        assert version >= self.version, (version, self.version)
        if kind == "BOOKMARK":
            self.version = version
            return
        assert version > self.version, (version, self.version)
        name = obj["metadata"]["name"]
        before = self.held.get(name, (None, 0))[0]
        assert (kind == "ADDED") is (before is None), (kind, name, before)
        after = None if kind == "DELETED" else whole(obj)
        self.held[name] = (after, version)
        self.events.append((name, after))
        self.version = version


class Survival:
    """Acknowledged writes so far, and the state that must follow from them."""

    def __init__(self, home: Path, *store: str) -> None:
        (home / "tokens").write_text(TOKENS)
        self.home = home
        self._store = store or ("--data-dir=data",)
        self.writers = [Writer(number) for number in range(WRITERS)]
        self.follower = Follower()
        self.floor = 0
        self.kills = self.early = self.answers = self.events = self.refused = 0
        self._dice = random.Random()

    def run(self, kills: int) -> None:
        while self.kills < kills:
            self._round()
            if self.kills % 100 == 0:
                print(self, flush=True)
        with self._start() as server:
            watching = self._check(self._port(server))
            assert server.stop() == 0
            watching.join(PATIENCE)

    def __str__(self) -> str:
        return (
            f"{self.kills} kills ({self.early} during the start), {self.answers} answered writes,"
            f" {self.refused} refused as stale, {self.events} events"
        )

    def _start(self) -> Any:
        return running(self.home, "apiserver", *self._store, *FLAGS)

    @staticmethod
    def _port(server: Running) -> int:
        return int(server.wait_for(READY, PATIENCE))

    def _round(self) -> None:
        """Runs a server from start to kill. Some are killed before their first request."""
        dice = self._dice
        self.kills += 1
        with self._start() as server:
            if dice.random() < 0.1:
                self.early += 1
                time.sleep(dice.random() * 0.5)
                server.stop(signal.SIGKILL)
                return
            port = self._port(server)
            watching = self._check(port)
            writing = [self._thread(writer.write, port) for writer in self.writers]
            self._wait_for_answers(dice.randrange(150))
            time.sleep(dice.random() * 0.02)
            server.stop(signal.SIGKILL)
            for thread in [*writing, watching]:
                thread.join(PATIENCE)
                assert not thread.is_alive()
        for writer in self.writers:
            assert writer.problem is None, (writer.problem, server.log.read_text()[-5000:])
        server.log.unlink()

    def _wait_for_answers(self, count: int) -> None:
        deadline = time.monotonic() + WRITING
        while sum(len(writer.answered) for writer in self.writers) < count and time.monotonic() < deadline:
            time.sleep(0.002)

    def _thread(self, target: Any, port: int) -> threading.Thread:
        thread = threading.Thread(target=target, args=(self.home, port), daemon=True)
        thread.start()
        return thread

    def _check(self, port: int) -> threading.Thread:
        """Checks that the objects equal the acknowledged writes and that the watch reported all of them.
        Returns the watch's thread."""
        connection = Connection(self.home, port)
        code, listed = connection.ask("GET", MAPS)
        connection.close()
        assert code == 200, listed
        now = int(listed["metadata"]["resourceVersion"])
        held: dict[str, Told] = {}
        for item in listed["items"]:
            held[item["metadata"]["name"]] = (whole(item), int(item["metadata"]["resourceVersion"]))
        self._check_versions(now)
        if not self.floor:
            assert not held
            self.follower.version = now
        watching = self._thread(self.follower.follow, port)
        self._catch_up(held)
        told = sorted_by_name(self.follower.events)
        for writer in self.writers:
            self._check_writer(writer, held, told)
        assert not told, told
        self.events += len(self.follower.events)
        self.follower.events = []
        self.floor = now
        return watching

    def _check_versions(self, now: int) -> None:
        assert now >= self.floor
        for writer in self.writers:
            versions = writer.versions
            assert versions == sorted(set(versions))
            assert not versions or (self.floor < versions[0] and versions[-1] <= now)
            writer.versions = []

    def _catch_up(self, held: dict[str, Told]) -> None:
        follower = self.follower

        def is_level() -> bool:
            assert follower.problem is None, follower.problem
            return {name: told for name, told in follower.held.items() if told[0] is not None} == held

        wait_for(is_level, PATIENCE, explain=lambda: (held, follower.held))

    def _check_writer(self, writer: Writer, held: dict[str, Told], told: dict[str, list[str | None]]) -> None:
        answered = sorted_by_name(writer.answered)
        for name in writer.held:
            expected = answered.get(name, [])
            allowed = [expected]
            if writer.doubt is not None and writer.doubt[0] == name:
                allowed.append([*expected, writer.doubt[1]])
            assert told.pop(name, []) in allowed, (name, allowed)
            writer.held[name] = held.get(name, (None, 0))
        self.answers += len(writer.answered)
        self.refused += writer.refused
        writer.answered, writer.doubt, writer.refused = [], None, 0


def sorted_by_name(changes: list[tuple[str, str | None]]) -> dict[str, list[str | None]]:
    found: dict[str, list[str | None]] = {}
    for name, value in changes:
        found.setdefault(name, []).append(value)
    return found


def survive(home: Path, kills: int, *store: str) -> Survival:
    """Kills a server `kills` times. Returns the figures if nothing was lost."""
    survival = Survival(home, *store)
    survival.run(kills)
    assert survival.answers > kills
    print(survival)
    return survival
