"""Limits of exec and logs: no command of a client takes much memory or keeps the event loop busy."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import tarfile
from typing import Any

import pytest

from kubist.base.http.messages import Request
from kubist.cluster.simulation.kubelet_api.api import Terminal
from kubist.cluster.simulation.kubelet_api.logs import Log, LogOptions
from kubist.cluster.simulation.kubelet_api.pods import spec_of
from kubist.cluster.simulation.kubelet_api.portforward import TargetError, target_of
from kubist.cluster.simulation.shell import container
from kubist.cluster.simulation.shell.budget import EXEC
from kubist.cluster.simulation.shell.environment import (
    ENVIRONMENT_LIMIT,
    FILES_LIMIT,
    environment,
    known_files,
)
from kubist.cluster.simulation.shell.syntax import Simple, parse
from kubist.model.meta.object import Object
from tests.simulation.streams.test_shell import POD, Box, Captured


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("V=aaaaaaaaaa;" + "V=$V$V;" * 60 + "echo $V", "a word that long"),
        ("V=aaaaaaaaaa;" + "V=$V$V;" * 13 + "echo " + "$V " * 1000, "a command that long"),
        ("V=aaaaaaaaaa;" + "V=$V$V;" * 13 + "".join(f"V{n}=$V;" for n in range(1000)), "variables that long"),
        ('V=\'sh -c "$V"\'; sh -c "$V"', "a shell that deep"),
        ('V=\'sh -c "$V"; sh -c "$V"; true\'; sh -c "$V"', "a shell that deep"),
        ("true;" * 11_000, "a script that long"),
        ("echo 1 > /a;" + "ls / / / / / / / /;" * 3_000, "a script that takes so long"),
        ("while :; do :; done", "a script that long"),
        ("while :; do echo : | sh; done", "a script that long"),
        ("for i in 1 2 3 4 5; do V=aaaaaaaaaa;" + "V=$V$(echo $V);" * 60 + "done", "a word that long"),
        (
            "V=aaaaaaaaaa;" + "V=$V$V;" * 13 + "for i in" + " i" * 20 + "; do echo $V; done | cat",
            "an output that long",
        ),
        ("(" * 30 + "true" + ")" * 30, "a script that deep"),
        ("echo $(" * 30 + ")" * 30, "a script that deep"),
        ('V=\'(((((sh -c "$V")))))\'; sh -c "$V"', "a shell that deep"),
        ("env " * 100 + "true", "a shell that deep"),
        (
            "V=aaaaaaaaaa;" + "V=$V$V;" * 13 + "echo $V > /b; while :; do cat /b > /dev/null; done",
            "takes so long",
        ),
    ],
)
def test_costly_script_is_refused(box: Box, script: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "EXEC", dataclasses.replace(EXEC, work=100_000))
    code, out, err = box.sh(script)
    assert (code, out.replace("a\n", "").replace("etc\n", "")) == (126, "")
    assert why in err


def test_appending_to_a_full_file_does_not_copy_it(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubist.cluster.simulation.shell.file_store.CONTAINER_LIMIT", 10_000)
    code, _, err = box.sh("echo -n " + "x" * 4_000 + " > /a; cat /a >> /b; cat /a >> /b; cat /b")
    assert err == "cat: No space left on device\n"
    assert code == 0


def test_other_tasks_run_between_the_commands_of_a_script(box: Box) -> None:
    turns = 0

    async def run(script: str) -> None:
        nonlocal turns

        async def tick() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(tick())
        await box.shell(Captured()).run(["sh", "-c", script])
        other.cancel()

    asyncio.run(run("true;" * 200))
    assert turns >= 200
    turns = 0
    asyncio.run(run("rm -f " + "x " * 2000))
    assert turns >= 100


@pytest.mark.parametrize("command", [["test", *["!"] * 5000, "a"], ["busybox"] * 5000 + ["true"]])
def test_deep_command_does_not_fail(box: Box, command: list[str]) -> None:
    assert box.run(*command) == (0, "", "")


@pytest.mark.parametrize("text", ["nan", "-nan", "nans", "NaN"])
def test_sleep_needs_a_number(box: Box, text: str) -> None:
    assert box.run("sleep", text) == (1, "", f"sleep: invalid number '{text}'\n")


def test_long_word_is_parsed_in_linear_time() -> None:
    (line,) = parse("echo " + "x" * 60_000)
    (command,) = line.commands
    assert isinstance(command.what, Simple)
    assert [len(word) for word in command.what.words] == [1, 1]


def test_terminal_handles_a_large_message() -> None:
    """Millions of keys in one message; a WebSocket message may have that many."""
    captured = Captured(b"\x1b[A" * 1_000_000 + b"echo hi\r")
    assert asyncio.run(Terminal(captured).read()) == b"echo hi\n"


def member(size: int, kind: bytes = tarfile.REGTYPE, content: bytes = b"") -> bytes:
    """Header of a member with any size, also a negative one, and its content."""
    info = tarfile.TarInfo("x")
    info.type = kind
    raw = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    raw[124:136] = b"\xff" + size.to_bytes(11, "big", signed=True) if size < 0 else b"%011o\0" % size
    raw[148:156] = b"%06o\0 " % (sum(raw[:148]) + sum(raw[156:512]) + 8 * 32)
    return bytes(raw) + content + b"\0" * (-len(content) % 512)


@pytest.mark.parametrize("size", [-512, -1024, -(1 << 40)])
def test_archive_with_a_negative_size_is_rejected(box: Box, size: int) -> None:
    assert box.run("tar", "xf", "-", stdin=member(size) * 2) == (1, "", "tar: invalid tar archive\n")


def test_long_extended_header_is_rejected(box: Box) -> None:
    digits = b"1" * 2_000_000
    sent = member(len(digits), tarfile.XHDTYPE, digits) + member(0) + b"\0" * 1024
    assert box.run("tar", "xf", "-", stdin=sent) == (1, "", "tar: invalid tar archive\n")


def test_long_names_are_extracted(box: Box) -> None:
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        output = io.BytesIO()
        name = "d/" * 150 + f"f{form}"
        with tarfile.open(fileobj=output, mode="w", format=form) as made:
            info = tarfile.TarInfo(name)
            info.size = 1
            made.addfile(info, io.BytesIO(b"A"))
        assert box.run("tar", "xf", "-", stdin=output.getvalue()) == (0, "", "")
        assert box.run("cat", f"/{name}") == (0, "A", "")


def test_archive_has_a_limited_number_of_files(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    box.run("touch", *(f"/d/{number}" for number in range(20)))
    assert box.run("tar", "cf", "-", "/d")[0] == 0
    monkeypatch.setattr("kubist.cluster.simulation.shell.file_commands._MEMBER_LIMIT", 10)
    assert box.run("tar", "cf", "-", "/d") == (1, "", "tar: No space left on device\n")


class Stored:
    """Objects of a server, which counts the reads."""

    def __init__(self, **objects: Object) -> None:
        self._objects = objects
        self.reads = 0

    def get(self, resource: str, name: str, namespace: str = "") -> Object | None:
        self.reads += 1
        return self._objects.get(name)


def pod(volumes: int = 0, **container: Any) -> Object:
    mounts = [{"name": "v", "mountPath": f"/m{number}"} for number in range(volumes)]
    spec = {
        "containers": [{"name": "main", "volumeMounts": mounts, **container}],
        "volumes": [{"name": "v", "configMap": {"name": "large"}}],
    }
    return {"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": spec}


def variables(of: Object, objects: Stored) -> dict[str, str]:
    return environment(of, spec_of(of, "main"), objects)


def test_variables_that_double_are_left_out() -> None:
    env = [{"name": "V0", "value": "a" * 1000}]
    env += [{"name": f"V{n}", "value": f"$(V{n - 1})$(V{n - 1})"} for n in range(1, 100)]
    env += [{"name": f"W{n}", "value": "$(V6)"} for n in range(1000)]
    found = variables(pod(env=env), Stored())
    assert max(map(len, found.values())) <= EXEC.word
    assert sum(map(len, found.values())) <= ENVIRONMENT_LIMIT


def test_repeated_references_are_read_once_and_limited() -> None:
    objects = Stored(large={"data": {"k": "x" * 500_000, "s": "y"}})
    sources = [{"prefix": f"P{n}_", "configMapRef": {"name": "large"}} for n in range(1000)]
    found = variables(pod(envFrom=sources), objects)
    assert sum(map(len, found.values())) <= ENVIRONMENT_LIMIT
    small = {"valueFrom": {"configMapKeyRef": {"name": "large", "key": "s"}}}
    found = variables(pod(env=[{"name": f"V{n}", **small} for n in range(1000)]), objects)
    assert found["V999"] == "y"
    mounting = pod(volumes=1000)
    files = known_files(mounting, spec_of(mounting, "main"), objects)
    assert sum(map(len, files.values())) <= FILES_LIMIT
    assert objects.reads <= 6


def test_long_log_is_formatted_in_a_thread() -> None:
    async def format_log() -> bytes:
        log = Log(LogOptions(timestamps=True), 0)
        task = asyncio.ensure_future(log.text(["x"] * 100_000))
        await asyncio.sleep(0)
        assert not task.done()
        return await task

    assert asyncio.run(format_log()).count(b"\n") == 100_000


@pytest.mark.parametrize("local", ["00008099999", "65536", "0", "", "-1", "٣"])
def test_target_port_must_be_a_port(local: str) -> None:
    annotated = {
        "metadata": {**POD["metadata"], "annotations": {"kubist.io/port-forward": f"80=127.0.0.1:{local}"}}
    }
    request = Request("GET", "/", "", {}, peer=("127.0.0.1", 1))
    with pytest.raises(TargetError):
        target_of(annotated, 80, request)
