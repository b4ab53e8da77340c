"""Killed at any moment under 16 writers, a server comes back with every write that it answered.

`KUBIST_SERVER_KILLS` says how often (8 by default).
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import ssl
import threading
import time
from pathlib import Path
from typing import Any

from processes import Running, running

from live import TOKENS

KILLS = int(os.environ.get("KUBIST_SERVER_KILLS", "8"))
WRITERS = 16
MAPS = "/api/v1/namespaces/default/configmaps"
READY = r"serving on 127\.0\.0\.1:(\d+)"


class Connection:
    def __init__(self, home: Path, port: int) -> None:
        context = ssl.create_default_context(cafile=str(home / "certs/apiserver.crt"))
        self._http = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": "Bearer admin-token", "Content-Type": kind}
        self._http.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = self._http.getresponse()
        return answer.status, json.loads(answer.read())

    def close(self) -> None:
        self._http.close()


class Writer(threading.Thread):
    """Writes to objects of its own until the server is gone; knows what it was told, and what is in doubt."""

    def __init__(self, home: Path, port: int, number: int, known: dict[str, str | None]) -> None:
        super().__init__(daemon=True)
        self.connection = Connection(home, port)
        self.number = number
        self.known = known
        """Name to what it holds; None: deleted."""
        self.doubt: tuple[str, str | None] | None = None
        self.versions: list[int] = []
        self.answers = 0

    def run(self) -> None:
        dice = random.Random()
        try:
            for step in range(1_000_000):
                name = f"w{self.number}-{dice.randrange(4)}"
                value: str | None = f"{time.monotonic_ns()}-{step}"
                if self.known.get(name) is None:
                    method, path = "POST", MAPS
                    body: Any = {
                        "metadata": {"name": name},
                        "data": {"v": value, "pad": "x" * dice.randrange(3000)},
                    }
                elif dice.random() < 0.2:
                    method, path, body, value = "DELETE", f"{MAPS}/{name}", None, None
                else:
                    method, path, body = "PATCH", f"{MAPS}/{name}", {"data": {"v": value}}
                self.doubt = (name, value)
                code, answer = self.connection.ask(method, path, body)
                assert code in (200, 201), answer
                self.known[name] = value
                self.doubt = None
                self.answers += 1
                if method != "DELETE":
                    self.versions.append(int(answer["metadata"]["resourceVersion"]))
        except (OSError, http.client.HTTPException, ValueError):
            return
        finally:
            self.connection.close()


def start(home: Path) -> Any:
    flags = ["--secure-port=0", "--bind-address=127.0.0.1", "--cert-dir=certs", "--token-auth-file=tokens"]
    return running(home, "apiserver", "--data-dir=data", *flags)


def check(home: Path, port: int, writers: list[Writer], floor: int) -> int:
    """What every writer was told is there; the version of now."""
    connection = Connection(home, port)
    _, listed = connection.ask("GET", MAPS)
    connection.close()
    held = {item["metadata"]["name"]: item["data"]["v"] for item in listed["items"] if "data" in item}
    now = int(listed["metadata"]["resourceVersion"])
    assert now >= max([floor, *(version for writer in writers for version in writer.versions)])
    for writer in writers:
        assert writer.versions == sorted(set(writer.versions))
        assert not writer.versions or writer.versions[0] > floor
        for name, value in writer.known.items():
            allowed = [value]
            if writer.doubt is not None and writer.doubt[0] == name:
                allowed.append(writer.doubt[1])
            assert held.get(name) in allowed, (name, held.get(name), allowed)
            writer.known[name] = held.get(name)
        if writer.doubt is not None:
            writer.known[writer.doubt[0]] = held.get(writer.doubt[0])
    return now


def test_killed_server_has_every_answered_write(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(TOKENS)
    known: list[dict[str, str | None]] = [{} for _ in range(WRITERS)]
    writers: list[Writer] = []
    floor = answers = 0
    server: Running
    for _ in range(KILLS):
        with start(tmp_path) as server:
            port = int(server.wait_for(READY))
            floor = check(tmp_path, port, writers, floor)
            writers = [Writer(tmp_path, port, number, known[number]) for number in range(WRITERS)]
            for writer in writers:
                writer.start()
            time.sleep(0.3 + random.random() * 0.3)
            server.stop(signal.SIGKILL)
            for writer in writers:
                writer.join(10)
            answers += sum(writer.answers for writer in writers)
    with start(tmp_path) as server:
        check(tmp_path, int(server.wait_for(READY)), writers, floor)
        assert server.stop() == 0
    assert answers > KILLS
