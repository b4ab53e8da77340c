"""Processes of a server with several workers: children that die are restarted, and all end together."""

from __future__ import annotations

import http.client
import os
import random
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import running
from tests.storage.etcd_server import EtcdServer, running_etcd
from tests.waiting import wait_for

from .crew import MERGE, PATIENCE, Crew, alive, children, crew

MAPS = "/api/v1/namespaces/default/configmaps"
KILLS = int(os.environ.get("KUBIST_WORKER_KILLS", "4"))


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    """An etcd for one test, because `serve` has no prefix flag."""
    with running_etcd(tmp_path) as server:
        yield server


class Writer(threading.Thread):
    """Counts up in its own object, regardless of connection failures."""

    def __init__(self, crew: Crew, number: int) -> None:
        super().__init__(daemon=True)
        self._crew = crew
        self._path = f"{MAPS}/w{number}"
        self.answered = -1
        """The last count that was answered. The next one may or may not be stored."""
        self.asked = -1
        self.versions: list[int] = []
        self.unavailable = 0
        self.failures: list[Any] = []
        """Responses other than success and 503."""
        self.going = True

    def run(self) -> None:
        while self.going:
            try:
                connection = self._crew.connect()
                while self.going:
                    self._step(connection)
            except (OSError, http.client.HTTPException, StopIteration, AssertionError, ValueError):
                continue

    def _step(self, connection: Any) -> None:
        self.asked += 1
        body = {"data": {"count": str(self.asked)}}
        code, answer = connection.ask("PATCH", self._path, body, MERGE)
        if code == 200:
            self.answered = self.asked
            self.versions.append(int(answer["metadata"]["resourceVersion"]))
        elif code == 503:
            self.unavailable += 1
        else:
            self.failures.append(answer)


def kill_under_writes(crew: Crew, victim: Callable[[], int]) -> None:
    """Kills processes again and again under 16 writers. No answered write may be missing afterwards."""
    connection = crew.connect()
    writers = [Writer(crew, number) for number in range(16)]
    for number in range(len(writers)):
        connection.post(MAPS, {"metadata": {"name": f"w{number}"}})
    count = len(crew.pids)
    for writer in writers:
        writer.start()

    def kill() -> None:
        killed = victim()
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: killed not in crew.pids and len(crew.pids) == count, PATIENCE)
        before = [writer.answered for writer in writers]
        wait_for(lambda: all(w.answered > b for w, b in zip(writers, before, strict=True)), PATIENCE)

    for _ in range(KILLS):
        time.sleep(0.2 + random.random() * 0.3)
        kill()
    for writer in writers:
        writer.going = False
    for writer in writers:
        writer.join()
    assert [failure for writer in writers for failure in writer.failures] == []
    for reader in crew.one_each(count - 1):
        listed = reader.get(MAPS)
        held = {item["metadata"]["name"]: item for item in listed["items"]}
        for number, writer in enumerate(writers):
            assert int(held[f"w{number}"]["data"]["count"]) in range(writer.answered, writer.asked + 1)
            assert writer.versions == sorted(set(writer.versions))
            assert int(listed["metadata"]["resourceVersion"]) >= writer.versions[-1]


def test_killed_worker_is_restarted_without_losing_answered_writes(tmp_path: Path) -> None:
    with crew(tmp_path, 3) as running:
        owner = running.pids[0]
        kill_under_writes(running, lambda: random.choice([pid for pid in running.pids if pid != owner]))
        assert running.pids[0] == owner
        assert running.process.output.count("restarting it") == KILLS


def test_killed_store_process_is_restarted_without_losing_answered_writes(tmp_path: Path) -> None:
    with crew(tmp_path, 2) as running:
        workers = running.pids[1:]

        def owner() -> int:
            return next(pid for pid in running.pids if pid not in workers)

        kill_under_writes(running, owner)
        assert set(workers) < set(running.pids)
        assert running.connect().ask("GET", "/readyz")[0] == 200
        assert "Traceback" not in running.process.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stop_ends_watches_and_every_process(tmp_path: Path, number: signal.Signals) -> None:
    with crew(tmp_path, 3) as running:
        pids = running.pids
        assert len(pids) == 4
        streams = [connection.send("GET", f"{MAPS}?watch=true") for connection in running.one_each(3)]
        running.process.stop(number)
        for stream in streams:
            stream.read()
        assert running.process.process.returncode == 0
        assert alive(pids) == []
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", running.port))


def test_interrupt_of_the_process_group_stops_cleanly(tmp_path: Path) -> None:
    """Like Ctrl-C."""
    with crew(tmp_path, 2) as running:
        pids = running.pids
        connection = running.connect()
        connection.post(MAPS, {"metadata": {"name": "kept"}})
        for pid in [*pids, running.process.process.pid]:
            os.kill(pid, signal.SIGINT)
        assert running.process.process.wait(PATIENCE) == 0
        assert alive(pids) == []
    with crew(tmp_path, 2) as again:
        assert again.connect().get(f"{MAPS}/kept")["metadata"]["name"] == "kept"


def test_children_end_when_their_parent_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as place:  # `tmp_path` may be too long for sockets
        monkeypatch.setenv("TMPDIR", place)
        with crew(tmp_path, 2) as running:
            pids = running.pids
            assert os.listdir(place)
            running.process.stop(signal.SIGKILL)
            wait_for(lambda: not alive(pids), PATIENCE)
            assert not os.listdir(place)
    with crew(tmp_path, 2) as again:
        assert again.connect().ask("GET", "/readyz")[0] == 200


def test_directory_for_temporary_files_may_be_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / ("long" * 30)
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    with crew(tmp_path, 2) as running:
        assert running.connect().ask("GET", "/readyz")[0] == 200


def test_end_of_the_in_memory_store_process_ends_the_server(tmp_path: Path) -> None:
    with running(tmp_path, "serve", "--in-memory", "--secure-port=0", "--workers=2") as process:
        process.wait_for(r"on https://127\.0\.0\.1:(\d+)", PATIENCE)
        pids = children(process.process.pid)
        os.kill(pids[0], signal.SIGKILL)
        assert process.process.wait(PATIENCE) == 1
        assert "kubist: the store process was ended by signal 9" in process.output
        assert alive(pids) == []


def test_all_sockets_are_closed_at_the_end(tmp_path: Path) -> None:
    flags = ("--in-memory", "--secure-port=0", "--workers=2")
    collects = "import gc, sys; from kubist.cli import main; main(sys.argv[1:]); gc.unfreeze(); gc.collect()"
    program = ("-W", "always::ResourceWarning", "-c", collects)
    with running(tmp_path, "serve", *flags, program=program) as process:
        process.wait_for(r"on https://127\.0\.0\.1:(\d+)", PATIENCE)
        assert process.stop() == 0
        assert "ResourceWarning" not in process.output


def test_failed_start_prints_one_line_error(tmp_path: Path) -> None:
    with crew(tmp_path, 2) as first:
        for flags, why, code in (
            (("--data-dir=data", "--secure-port=0"), "is in use by another process", 6),
            (("--data-dir=other", f"--secure-port={first.port}"), "is taken", 5),
        ):
            with running(tmp_path, "serve", "--workers=2", *flags) as second:
                assert second.process.wait(PATIENCE) == code
                assert why in second.output
                assert len(second.output.splitlines()) == 1, second.output


@pytest.mark.parametrize("number", ["0", "-1", "many", "65"])
def test_invalid_number_of_workers_is_rejected(tmp_path: Path, number: str) -> None:
    with running(tmp_path, "apiserver", f"--workers={number}") as process:
        assert process.process.wait(PATIENCE) == 2
        assert f'invalid argument "{number}" for "--workers" flag' in process.output


@pytest.mark.etcd
def test_workers_on_etcd_have_no_store_process(tmp_path: Path, own_etcd: EtcdServer) -> None:
    with crew(tmp_path, 2, f"--etcd-servers={own_etcd.endpoint}") as running:
        assert len(running.pids) == 2
        here, there = running.one_each(2)
        for step in range(20):
            here.post(MAPS, {"metadata": {"name": f"m{step}"}})
            assert there.ask("GET", f"{MAPS}/m{step}")[0] == 200
        assert there.ask("DELETE", f"{MAPS}/m0")[0] == 200
        here.post(MAPS, {"metadata": {"name": "m0"}})


def test_control_api_is_refused_with_its_reason(tmp_path: Path) -> None:
    with crew(tmp_path, 2) as workers:
        for path in ("clock", "snapshots"):
            code, body = workers.connect().ask("GET", f"/kubist/v1/{path}")
            assert code == 409 and "no test bench with --workers" in body["message"]
