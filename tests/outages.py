"""Server under load while its store fails: writers, readers and watchers, and checks of their results."""

from __future__ import annotations

import collections
import http.client
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.live import Client, Pki, configmap, version
from tests.waiting import wait_for

MAPS = "/api/v1/namespaces/default/configmaps"
READERS = 2
WATCHERS = 3
WRITERS = 4


class Work:
    """Writers that create, change and delete; readers; watchers that record every event."""

    def __init__(self, port: int, pki: Pki) -> None:
        self._port = port
        self._pki = pki
        self._clients: list[Client] = []
        self._client = self._connected()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.acknowledged: dict[str, str | None] = {}
        """Last acknowledged value of each name (None: deleted)."""
        self.doubtful: set[str] = set()
        """Names with a change that was not acknowledged."""
        self.answers: collections.Counter[tuple[str, int]] = collections.Counter()
        self.problems: list[str] = []
        self.slowest = 0.0
        self.last_write = 0.0
        self.events: list[list[dict[str, Any]]] = [[] for _ in range(WATCHERS)]

    def __enter__(self) -> Work:
        began = version(self._client.get(MAPS))
        self._start(*(lambda n=n: self._watch(n, began) for n in range(WATCHERS)))
        self._start(*(lambda n=n: self._write(n) for n in range(WRITERS)))
        self._start(*(self._read for _ in range(READERS)))
        return self

    def __exit__(self, *_: object) -> None:
        """Stops the work. The watchers are done when they have seen the last object."""
        self._over.set()
        for thread in self._threads[WATCHERS:]:
            thread.join(60)
        wait_for(lambda: self._client.ask("POST", MAPS, configmap("end")).status in (201, 409), 60, pause=0.1)
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "somebody is still at work"
        for client in self._clients:
            client.close()

    def _connected(self) -> Client:
        client = Client(self._port, self._pki)
        self._clients.append(client)
        return client

    def _start(self, *tasks: Callable[[], None]) -> None:
        for task in tasks:
            thread = threading.Thread(target=self._guarded, args=(task,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _guarded(self, task: Callable[[], None]) -> None:
        try:
            task()
        except Exception as error:  # reported at the end, by the thread that asserts
            self.problems.append(repr(error))

    def _ask(self, client: Client, method: str, path: str, body: Any = None) -> int:
        began = time.monotonic()
        answer = client.ask(method, path, body)
        self.slowest = max(self.slowest, time.monotonic() - began)
        self.answers[method, answer.status] += 1
        if answer.status == 503:
            if answer.headers["Retry-After"] != "1":
                self.problems.append(f"{method}: no Retry-After: {answer}")
            time.sleep(0.05)
        elif answer.status >= 400:
            self.problems.append(f"{method} {path}: {answer}")
        return answer.status

    def _read(self) -> None:
        client = self._connected()
        while not self._over.is_set():
            self._ask(client, "GET", f"{MAPS}?limit=5")
            time.sleep(0.02)

    def _write(self, number: int) -> None:
        client = self._connected()
        turn = 0
        while not self._over.is_set():
            turn += 1
            name = f"w{number}-{turn}"
            if self._ask(client, "POST", MAPS, configmap(name, v="0")) != 201:
                self.doubtful.add(name)
                continue
            self.acknowledged[name] = "0"
            self.last_write = time.monotonic()
            if self._ask(client, "PUT", f"{MAPS}/{name}", configmap(name, v="1")) != 200:
                self.doubtful.add(name)
                continue
            self.acknowledged[name] = "1"
            if turn % 3 == 0:
                if self._ask(client, "DELETE", f"{MAPS}/{name}") != 200:
                    self.doubtful.add(name)
                    continue
                self.acknowledged[name] = None

    def _watch(self, number: int, began: int) -> None:
        client = self._connected()
        while not self._over.is_set():
            try:
                with client.watch(f"{MAPS}?resourceVersion={began}", timeout=600) as watch:
                    for event in watch:
                        if event["type"] == "ERROR":
                            self.problems.append(f"watch: {event}")
                            return
                        began = version(event["object"])
                        self.events[number].append(event)
                        if event["object"]["metadata"]["name"] == "end":
                            return
            except (OSError, http.client.HTTPException) as error:
                self.problems.append(f"watch: {error!r}")
                return
            if not self._over.is_set():
                self.problems.append("watch: ended by the server")
                return

    def wait_for_503(self, *methods: str, within: float = 60.0) -> None:
        """Waits until each of these requests got a 503."""
        wait_for(
            lambda: all(self.answers[method, 503] for method in methods),
            within,
            explain=lambda: dict(self.answers),
        )

    def recovered(self, within: float) -> float:
        """Seconds until writes succeed again."""
        began = time.monotonic()
        while self.last_write < began:
            assert time.monotonic() - began < within, f"no write succeeded in {within} s"
            time.sleep(0.01)
        return self.last_write - began

    def check(self) -> None:
        """Checks that no acknowledged write is lost, and that every watcher saw every change once, in order."""
        assert self.problems == []
        held = self.check_held(self._client)
        self._client.close()
        for events in self.events:
            versions = [version(event["object"]) for event in events]
            assert versions == sorted(set(versions)), "in order, none twice"
            assert versions == [version(event["object"]) for event in self.events[0]], "all saw the same"
            assert replayed(events) == held

    def check_held(self, client: Client) -> dict[str, str]:
        """Objects in the server, which must equal the acknowledged ones."""
        held = {
            item["metadata"]["name"]: item["data"]["v"]
            for item in client.get(MAPS)["items"]
            if item["metadata"]["name"].startswith("w")
        }
        for name, value in self.acknowledged.items():
            if name not in self.doubtful:
                assert held.get(name) == value, name
        assert set(held) <= set(self.acknowledged) | self.doubtful
        return held


def replayed(events: list[dict[str, Any]]) -> dict[str, str]:
    """State after these events."""
    held: dict[str, str] = {}
    for event in events:
        name = event["object"]["metadata"]["name"]
        if not name.startswith("w"):
            continue
        if event["type"] == "DELETED":
            del held[name]
        else:
            assert (event["type"] == "ADDED") == (name not in held), event
            held[name] = event["object"]["data"]["v"]
    return held
