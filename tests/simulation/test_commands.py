"""Simulated commands: duration, exit code and files of simple scripts."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kubist.cluster.simulation.commands import Run, file_scopes, run_of, termination_message


def run(
    *argv: str, files: set[str] | None = None, env: dict[str, str] | None = None, attempt: int = 0
) -> Run | None:
    variables = [{"name": name, "value": value} for name, value in (env or {}).items()]
    container = {"name": "c", "image": "busybox", "command": list(argv), "env": variables}
    return run_of(pod(), container, attempt, files or set())


def pod() -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "n", "uid": "u", "annotations": {"a/b": "7"}, "labels": {"l": "8"}}
    return {"metadata": metadata, "spec": {"nodeName": "node"}}


@pytest.mark.parametrize(
    ("argv", "seconds", "code"),
    [
        (["true"], 0, 0),
        (["/bin/true"], 0, 0),
        (["/usr/bin/false"], 0, 1),
        (["sleep", "3"], 3, 0),
        (["sleep", "1m", "0.5"], 60.5, 0),
        (["sleep", "infinity"], math.inf, 0),
        (["tail", "-f", "/dev/null"], math.inf, 0),
        (["echo", "hello"], 0, 0),
        (["sh", "-c", "exit 3"], 0, 3),
        (["/bin/sh", "-c", "exit 256"], 0, 0),
        (["bash", "-ec", "false; exit 0"], 0, 1),
        (["sh", "-e", "-c", "false; exit 0"], 0, 1),
        (["sh", "-c", "sleep 2 && exit 4"], 2, 4),
        (["sh", "-c", "false || exit 5"], 0, 5),
        (["sh", "-c", "false && exit 5"], 0, 1),
        (["sh", "-c", "false; true"], 0, 0),
        (["sh", "-c", "set -e; false; true"], 0, 1),
        (["sh", "-c", "set -e; false || true; exit 2"], 0, 2),
        (["sh", "-c", "! true"], 0, 1),
        (["sh", "-c", "echo a | false"], 0, 1),
        (["sh", "-c", "exit 3 | true; exit 1"], 0, 1),
        (["sh", "-c", "(exit 3); exit $((1+1))"], 0, 2),
        (["sh", "-c", "{ sleep 1; sleep 2; }"], 3, 0),
        (["sh", "-c", "echo 'it; exit 9'; exit 1 # comment"], 0, 1),
        (["sh", "-c", "sleep 1; exec sleep 2"], 3, 0),
        (["sh", "-c", "sh -c 'exit 3' || exit 4"], 0, 4),
        (["sh", "-c", "while true; do echo x; sleep 1; done"], math.inf, 0),
        (["bash", "-euo", "pipefail", "-c", "false | true; exit 9"], 0, 1),
        (["bash", "-o", "pipefail", "-c", "exit 3 | true"], 0, 3),
        (["sh", "-c", "set -euo pipefail; false | true; exit 9"], 0, 1),
        (["sh", "-c", "set -o pipefail; set +o pipefail; false | true"], 0, 0),
        (["sh", "-c", "trap 'exit 0' TERM INT; sleep 10; exit 3"], 10, 3),
        (["sh", "-c", "date; hostname; mkdir -p /tmp/a; printf '%s\\n' x; exit 4"], 0, 4),
        (["sh", "-c", 'echo "started $(date)"; exit 5'], 0, 5),
        (["sh", "-c", "until [ $(date +%s) -ge 3 ]; do sleep 1; done; exit 6"], 3, 6),
        (["/usr/bin/env", "A=7", "sh", "-c", "exit $A"], 0, 7),
        (["nohup", "sh", "-c", "exit 8"], 0, 8),
        (["tini", "--", "sh", "-c", "exit 9"], 0, 9),
        (["busybox", "sleep", "2"], 2, 0),
        (["timeout", "3", "sleep", "10"], 3, 124),
        (["timeout", "3", "sleep", "infinity"], 3, 124),
        (["timeout", "10s", "sh", "-c", "sleep 1; exit 2"], 1, 2),
        (["sh", "-c", "until false; do sleep 1; done"], math.inf, 0),
        (["sh", "-c", "for i in 1 2 3; do sleep $i; done"], 6, 0),
        (["sh", "-c", "i=0; while [ $i -lt 3 ]; do sleep 1; i=$((i + 1)); done; exit $i"], 3, 3),
        (["sh", "-c", "if [ 1 -eq 2 ]; then exit 1; elif test a = a; then exit 2; else exit 3; fi"], 0, 2),
        (["sh", "-c", 'if [ -z "" ] && [ "x" != "y" ]; then exit 6; fi'], 0, 6),
        (["sh", "-c", "echo hi > /dev/null 2>&1 && exit 7"], 0, 7),
        (["sh", "-c", "CODE=4; exit $CODE"], 0, 4),
        (["sh", "-c", "exit $(expr 7 % 4)"], 0, 3),
        (["sh", "-c", "exit ${FROM_ENV}"], 0, 9),
        (["sh", "-c", "exit $(FROM_ENV)"], 0, 9),
        (["sh", "-c", "command -v sh > /dev/null && [ -x /bin/sh ] && exec bash -c 'exit 3'"], 0, 3),
        (["sh", "-c", "echo 5 > /code; exit $(cat /code | cat)"], 0, 5),
        (["sh", "-c", "sh -c 'exit 6'; exit $?"], 0, 6),
        (["sh", "-c", "i=0; while sleep 1; do i=$i; [ $i = 3 ] && break; done; exit 7"], math.inf, 0),
        (["sh", "-c", "for i in 1 2 3; do sleep 1; [ $i = 2 ] && break; done; exit $i"], 2, 2),
        (["sh", "-c", "LIST='1 2 3'; for i in $LIST; do sleep $i; done"], 6, 0),
        (["sh", "-c", "while true; do sleep 1; echo x >> /f; done"], math.inf, 0),
        (
            ["sh", "-c", ': > /f; until [ "$(cat /f)" = aaa ]; do sleep 1; echo -n a >> /f; done; exit 8'],
            3,
            8,
        ),
        (["sh", "-c", "echo x > /dev/stderr 2>&1; [ $(id -u) = 0 ] && exit 9"], 0, 9),
        (["timeout", "9", "timeout", "20", "sh", "-c", "timeout 2 sleep 5; sleep 30"], 9, 124),
    ],
)
def test_command_behaves_as_written(argv: list[str], seconds: float, code: int) -> None:
    found = run(*argv, env={"FROM_ENV": "9"})
    assert found is not None
    assert (found.seconds, found.code) == (seconds, code)


@pytest.mark.parametrize(
    "argv",
    [
        ["nginx"],
        ["/agnhost", "pause"],
        ["sh"],
        ["sh", "script.sh"],
        ["sh", "-c", "nginx -g 'daemon off;'"],
        ["sh", "-c", "exit $UNSET"],
        ["sh", "-c", "trap 'exit 0' EXIT; exit 3"],
        ["sh", "-o", "vi", "-c", "exit 3"],
        ["sh", "-c", "printf '%d' 1"],
        ["sh", "-c", "date -d yesterday"],
        ["sh", "-c", "date +%N"],
        ["sh", "-c", "sleep 999999999d; date"],
        ["sh", "-c", "while [ $(date +%s) -lt 9999999999 ]; do sleep 1; done"],
        ["timeout", "5", "nginx"],
        ["env", "-i", "true"],
        ["sh", "-c", "sleep 5 & wait"],
        ["sh", "-c", "exit `date`"],
        ["sh", "-c", "echo 'unterminated"],
        ["sh", "-c", "if true; then exit 1"],
        ["sh", "-c", "while true; do true; done"],
        ["sh", "-c", "(" * 500 + ")" * 500],
        ["sh", "-c", "x=1; for i in " + "1 " * 3000 + "; do x=2; done"],
        ["sh", "-c", "true; " * 5000],
        ["sh", "-c", "cat <<EOF\nx\nEOF"],
        ["sh", "-c", "exit 1 &&"],
        ["sh", "-c", "exit " + "9" * 100],
        ["sh", "-c", "exit $((1 / 0))"],
        ["sh", "-c", "cat; exit 1"],
        ["sh", "-c", "cat /etc/os-release && exit 1"],
        ["sh", "-c", "ls /app || exit 1"],
        ["sh", "-c", "cd /app || exit 1"],
        ["sh", "-c", "[ -d /app ] || exit 1"],
        ["sh", "-c", "command -v nginx || exit 1"],
        ["sh", "-c", "printenv UNSET || exit 1"],
        ["sh", "-c", "mv /a /b || exit 1"],
        ["sh", "-c", "exit 1 < /a"],
        ["tar", "cf", "-", "/etc"],
        ["cd", "/"],
    ],
)
def test_end_of_other_commands_is_not_known(argv: list[str]) -> None:
    assert run(*argv) is None


def test_args_alone_count_as_command() -> None:
    container = {"name": "c", "image": "busybox", "args": ["sleep", "2"]}
    found = run_of(pod(), container, 0, set())
    assert found is not None
    assert found.seconds == 2
    assert run_of(pod(), {"name": "c", "image": "agnhost", "args": ["netexec"]}, 0, set()) is None
    assert run_of(pod(), {"name": "c", "image": "nginx"}, 0, set()) is None


def test_pause_image_does_not_end() -> None:
    for image in ("registry.k8s.io/pause:3.10", "pause", "localhost:5000/pause@sha256:00"):
        found = run_of(pod(), {"name": "c", "image": image}, 0, set())
        assert found is not None
        assert math.isinf(found.seconds)


SCRIPT = """
    if [[ -r /data/foo-$INDEX ]]
    then
        exit 0
    else
        touch /data/foo-$INDEX
        exit 42
    fi
"""


def test_files_decide_about_the_next_run() -> None:
    first = run("/bin/sh", "-c", SCRIPT, env={"INDEX": "2"})
    assert first is not None
    assert (first.code, first.files) == (42, {"/data/foo-2"})
    second = run("/bin/sh", "-c", SCRIPT, env={"INDEX": "2"}, files=first.files)
    assert second is not None
    assert second.code == 0


def test_directories_are_kept_for_the_next_run() -> None:
    script = "[ -e /data/d ] && [ -d /data/d ] && [ -s /data/f ] && exit 3; mkdir /data/d; echo x > /data/f"
    first = run("sh", "-c", script)
    assert first is not None
    assert (first.code, first.files) == (0, {"/data/d/", "/data/f"})
    second = run("sh", "-c", script, files=first.files)
    assert second is not None
    assert second.code == 3
    assert run("cat", "/data/f", files=first.files) is None, "only the path is known"


def test_environment_has_fields_of_the_pod() -> None:
    fields = {"A": "metadata.annotations['a/b']", "L": "metadata.labels['l']", "N": "metadata.name"}
    env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    container = {"name": "c", "command": ["sh", "-c", 'echo "$A $L ${N}"'], "env": env}
    found = run_of(pod(), container, 0, set())
    assert found is not None
    assert found.output == "7 8 p\n"


def test_random_numbers_repeat_for_the_same_run() -> None:
    script = "exit $(( $RANDOM / 16384 ))"
    codes = [getattr(run("sh", "-c", script, attempt=attempt), "code", None) for attempt in range(20)]
    again = [getattr(run("sh", "-c", script, attempt=attempt), "code", None) for attempt in range(20)]
    assert codes == again
    assert set(codes) == {0, 1}


def test_termination_message_comes_from_its_file_or_from_the_output() -> None:
    found = run("sh", "-c", "echo -n DONE > /dev/termination-log; echo log; exit 1")
    assert found is not None
    assert termination_message({"name": "c"}, found) == "DONE"
    assert found.output == "log\n"
    other = {"terminationMessagePath": "/dev/other", "terminationMessagePolicy": "FallbackToLogsOnError"}
    assert termination_message(other, found) == "log\n"


def test_mounts_of_volumes_keep_files() -> None:
    held = pod()
    held["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}, {"name": "h", "hostPath": {"path": "/tmp/x"}}]
    mounts = [{"name": "v", "mountPath": "/data"}, {"name": "h", "mountPath": "/data/host/"}]
    scopes = file_scopes(held, {"name": "c", "volumeMounts": mounts})
    assert scopes == [("/data/host", "host/node//tmp/x"), ("/data", "pod/u/v")]


@pytest.mark.parametrize(
    "script",
    [
        "i=0; while [ $i -lt 300 ]; do i=$((i+1)); x=$(: " + "a" * 9_000 + "); done",
        "a=" + "x" * 5_000 + "; for i in 1 2 3; do echo " + "$a " * 1_000 + "; done",
        "a=" + "x" * 1_000 + "; for i in 1 2 3 4 5 6 7 8 9; do touch " + "$i$a a$i$a b$i$a " * 400 + "; done",
        "i=0; while [ $i -lt 600 ]; do i=$((i+1)); touch $i a$i b$i c$i d$i e$i f$i g$i; done; sleep 1",
        "sh -c 'exit 1';" * 1_000,
    ],
)
def test_costly_script_is_not_simulated(script: str) -> None:
    variables = {f"V{number}": "" for number in range(3_000)}
    assert run("sh", "-c", script, env=variables) is None


def test_very_long_command_is_not_simulated() -> None:
    assert run("test", *["!"] * 100_000, "a") is None


def test_loop_of_ordinary_length_is_simulated() -> None:
    ended = run("sh", "-c", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo line $i; done; exit 4")
    assert ended is not None and ended.code == 4
