"""`kubist serve --detach`, `status`, `logs` and `stop`."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubist.cli import instance
from tests.cli.processes import environment, kubist, running
from tests.waiting import wait_for


def call(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in a process of its own, because `--detach` forks. Leaves out its progress."""
    done = subprocess.run(
        [sys.executable, "-m", "kubist", *arguments],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    done.stderr = re.sub(r"^Waiting for the server … .*\n", "", done.stderr, flags=re.MULTILINE)
    return done


def facts(home: Path, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kubist("status", "-o", "json", *arguments, home=home).stdout)
    return found


@contextlib.contextmanager
def detached(home: Path, *arguments: str) -> Iterator[subprocess.CompletedProcess[str]]:
    """A detached server of the directory `data`, which is killed at the end if it still runs."""
    try:
        yield call(home, "serve", "--detach", "--data-dir=data", "--secure-port=0", *arguments)
    finally:
        if pid := instance.holder(home / "data"):
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: instance.holder(home / "data") is None, 30)


def has_ended(pid: int) -> bool:
    """Whether a process has ended. Its parent may not have noticed yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_detached_server_is_shown_and_stopped(home: Path) -> None:
    with detached(home) as started:
        assert (started.returncode, started.stderr) == (0, "")
        assert f"export KUBECONFIG={shlex.quote(f'{home}/data/kubeconfig')}\n" in started.stdout
        assert f"kubist stop --data-dir {shlex.quote(f'{home}/data')}" in started.stdout
        found = facts(home, "--data-dir=data")
        assert found["running"] and found["ready"] and found["health"] == "ready"
        assert found["address"] in started.stdout
        assert found["objects"] > 100 and found["storeBytes"] > 1000 and found["uptimeSeconds"] >= 0
        assert found["pid"] == instance.holder(home / "data")
        shown = kubist("status", "--data-dir=data", home=home)
        assert shown.returncode == 0
        assert f"  Address     {found['address']}\n" in shown.stdout
        assert f"  Log         {home}/data/server.log\n" in shown.stdout
        for name in (instance.LOCK, instance.RECORD, instance.LOG):
            assert stat.S_IMODE((home / "data" / name).stat().st_mode) == 0o600

        again = call(home, "serve", "--detach", "--data-dir=data", "--secure-port=0")
        assert again.returncode == 6
        assert found["address"] in again.stderr and "`kubist stop --data-dir" in again.stderr

        stopped = kubist("stop", "--data-dir=data", home=home)
        assert stopped.returncode == 0
        assert stopped.stdout == f"Stopped the server of {home}/data (process {found['pid']}).\n"
        assert has_ended(found["pid"])
    for _ in range(2):
        again = kubist("stop", "--data-dir=data", home=home)
        assert (again.returncode, again.stdout.splitlines()[0]) == (
            0,
            f"No server runs on {home}/data: `kubist serve` starts one.",
        )
    assert kubist("status", "--data-dir=data", home=home).returncode == 3
    assert facts(home, "--data-dir=data")["running"] is False
    assert sorted(path.name for path in (home / "data").glob("server.*")) == ["server.lock", "server.log"]


def test_killed_server_is_not_running(home: Path) -> None:
    """Neither its files nor another process with its ID count."""
    with detached(home):
        pid = facts(home, "--data-dir=data")["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: instance.holder(home / "data") is None, 30)
        record = json.loads((home / "data" / instance.RECORD).read_text())
        assert record["pid"] == pid, "the record is left over"
        record["pid"] = os.getpid()  # as if this process had got its ID
        (home / "data" / instance.RECORD).write_text(json.dumps(record))
        assert kubist("status", "--data-dir=data", home=home).returncode == 3
        assert "No server runs" in kubist("stop", "--data-dir=data", home=home).stdout
    with detached(home) as started:
        assert started.returncode == 0
        assert facts(home, "--data-dir=data")["ready"]
        assert kubist("stop", "--data-dir=data", home=home).returncode == 0


def test_server_in_the_foreground_is_shown_and_stopped(home: Path) -> None:
    with running(home, "serve", "--data-dir=data", "--secure-port=0") as server:
        server.wait_for("(export KUBECONFIG)")
        found = facts(home, "--data-dir=data")
        assert (found["pid"], found["ready"], found["log"]) == (server.process.pid, True, None)
        logs = kubist("logs", "--data-dir=data", home=home)
        assert logs.returncode == 1 and "started without --detach" in logs.stderr
        done = call(home, "stop", "--data-dir=data")
        assert done.returncode == 0
        assert server.process.wait(30) == 0


def test_servers_in_memory_have_a_temporary_directory(home: Path) -> None:
    done = call(home, "serve", "--detach", "--in-memory", "--secure-port=0")
    assert done.returncode == 0, done.stderr
    assert "in memory: nothing is kept" in done.stdout
    kubeconfig = Path(*shlex.split(done.stdout.partition("export KUBECONFIG=")[2].splitlines()[0]))
    directory = str(kubeconfig.parent)
    assert f"  --data-dir {shlex.quote(directory)}" in kubist("status", home=home).stdout
    found = facts(home, "--data-dir", directory)
    assert found["ready"] and found["inMemory"] and found["storeBytes"] is None
    assert kubist("stop", "--data-dir", directory, home=home).returncode == 0
    assert not kubeconfig.parent.exists()
    assert not (home / ".local").exists()


def test_workers_are_stopped_together(home: Path) -> None:
    with detached(home, "--workers=2") as started:
        assert started.returncode == 0, started.stderr
        assert facts(home, "--data-dir=data")["ready"]
        assert kubist("stop", "--data-dir=data", home=home).returncode == 0
    assert instance.holder(home / "data") is None


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--enable-admission-plugins=Nope"], 2, '"Nope" is unknown'),
        (["--secure-port=PORT"], 5, "is taken: stop the process that uses it"),
        (["--nope"], 2, "unknown flag: --nope"),
    ],
)
def test_start_error_of_a_detached_server_is_shown(
    home: Path, arguments: list[str], code: int, words: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        given = [word.replace("PORT", str(taken.getsockname()[1])) for word in arguments]
        for place in (["--data-dir=data"], ["--in-memory"]):
            done = call(home, "serve", "--detach", *place, *given)
            assert (done.returncode, done.stdout) == (code, "")
            assert done.stderr.startswith("kubist: ") and done.stderr.count("\n") == 1
            assert words in done.stderr
    assert instance.holder(home / "data") is None


def test_crash_at_the_start_shows_the_end_of_the_log(home: Path) -> None:
    (home / "sitecustomize.py").write_text(
        "import os, kubist.server.runtime.pki\n"
        "def crash(*_, **__):\n    print('last words', flush=True)\n    os.kill(os.getpid(), 9)\n"
        "kubist.server.runtime.pki.prepare = crash\n"
    )
    variables = environment(home)
    variables["PYTHONPATH"] = f"{home}{os.pathsep}{variables['PYTHONPATH']}"
    command = [sys.executable, "-m", "kubist", "serve", "--detach", "--data-dir=data"]
    done = subprocess.run(
        command, env=variables, cwd=home, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert "did not become ready: signal 9 ended it. Its log is data/server.log" in done.stderr
    assert "  last words\n" in done.stderr


def test_log_lines_are_selected(home: Path) -> None:
    log = home / "data" / instance.LOG
    log.parent.mkdir()
    lines = [f"line {number}" for number in range(30_000)]
    log.write_text("\n".join(lines) + "\n")
    for arguments, expected in (
        ([], lines),
        (["--tail", "3"], lines[-3:]),
        (["-n", "20000"], lines[-20_000:]),
        (["--tail=99999"], lines),
        (["--tail=0"], []),
        (["-f", "--tail=2"], lines[-2:]),  # ends, because no server runs
    ):
        done = kubist("logs", "--data-dir=data", *arguments, home=home)
        assert (done.returncode, done.stdout.splitlines()) == (0, expected)
    log.write_text("a\nb without an end")
    assert kubist("logs", "--data-dir=data", "--tail=1", home=home).stdout == "b without an end"


def test_log_is_followed_until_the_server_ends(home: Path) -> None:
    (home / "data").mkdir()
    log = home / "data" / instance.LOG
    log.write_text("old\n")
    server = instance.Instance(home / "data")
    process = subprocess.Popen(
        [sys.executable, "-m", "kubist", "logs", "-f", "--data-dir=data"],
        env=environment(home),
        cwd=home,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "old\n"
        with log.open("a") as more:
            more.write("new\n")
        assert process.stdout.readline() == "new\n"
        log.rename(log.with_name("server.log.1"))
        log.write_text("rotated\n")
        assert process.stdout.readline() == "rotated\n"
        server.close()
        assert process.wait(60) == 0


def test_large_log_is_rotated_at_the_start(home: Path) -> None:
    (home / "data").mkdir()
    with (home / "data" / instance.LOG).open("wb") as log:
        log.truncate(17 << 20)
    with detached(home) as started:
        assert started.returncode == 0
        assert (home / "data" / "server.log.1").stat().st_size == 17 << 20
        assert (home / "data" / instance.LOG).stat().st_size < 10_000
        assert kubist("stop", "--data-dir=data", home=home).returncode == 0


def test_stop_reports_a_server_that_does_not_end(home: Path) -> None:
    """The holder of the lock ignores SIGTERM."""
    (home / "data").mkdir()
    program = (
        "import signal, sys, time; from pathlib import Path; from kubist.cli.instance import Instance\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); held = Instance(Path('data')); print(1, flush=True)\n"
        "time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=home, env=environment(home), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            found = facts(home, "--data-dir=data")
            assert (found["running"], found["ready"], found["health"]) == (True, False, "starting")
            assert kubist("status", "--data-dir=data", home=home).returncode == 1
            done = kubist("stop", "--data-dir=data", "--timeout=10ms", home=home)
            assert done.returncode == 1
            assert f"process {process.pid} still runs after 10ms" in done.stderr
            assert f"`kill -9 {process.pid}`" in done.stderr
        finally:
            process.kill()


def test_hanging_server_is_not_ready(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubist.cli.status.SECONDS", 0.2)
    with running(home, "serve", "--data-dir=data", "--secure-port=0") as server:
        server.wait_for("(export KUBECONFIG)")
        server.process.send_signal(signal.SIGSTOP)
        try:
            found = facts(home, "--data-dir=data")
        finally:
            server.process.send_signal(signal.SIGCONT)
        assert (found["running"], found["ready"]) == (True, False)
        assert found["health"] == "no response in 0.2 s"


def test_interrupted_start_leaves_no_server(home: Path) -> None:
    """The server waits for the lock of the keys, so Ctrl-C comes before it is ready."""
    pki = home / "data" / "pki"
    pki.mkdir(parents=True)
    descriptor = os.open(pki, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "kubist", "serve", "--detach", "--data-dir=data", "--secure-port=0"],
            env=environment(home),
            cwd=home,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            wait_for(lambda: instance.holder(home / "data") is not None, 60)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "Traceback" not in errors
    finally:
        os.close(descriptor)
    assert instance.holder(home / "data") is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["status", "--output=yaml"], 'invalid argument "yaml" for "--output" flag: must be text or json'),
        (["stop", "--timeout=soon"], '"--timeout" flag'),
        (["logs", "--tail=many"], 'invalid argument "many" for "--tail" flag'),
        (["logs", "--tail=-2"], 'invalid argument "-2" for "--tail" flag'),
        (["logs", "--folow"], 'did you mean "--follow"?'),
    ],
)
def test_wrong_flags_are_one_line(home: Path, arguments: list[str], words: str) -> None:
    done = kubist(*arguments, home=home)
    assert done.returncode == 2
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_missing_log_names_the_command_that_writes_one(home: Path) -> None:
    done = kubist("logs", "--data-dir=absent", home=home)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "kubist: there is no log in absent: `kubist serve --detach` writes one\n"
