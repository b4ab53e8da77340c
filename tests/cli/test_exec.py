"""`kubist exec`: a command with a temporary server."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from tests.waiting import wait_for

KUBIST = [sys.executable, "-m", "kubist"]
READ = """
import os, ssl, sys, urllib.request, yaml
config = yaml.safe_load(open(os.environ["KUBECONFIG"]))
[cluster], [user] = config["clusters"], config["users"]
server = cluster["cluster"]["server"]
assert server == os.environ["KUBIST_URL"]
context = ssl._create_unverified_context()
request = urllib.request.Request(server + sys.argv[1], headers={"Authorization": "Bearer " + user["user"]["token"]})
print(urllib.request.urlopen(request, context=context).read().decode())
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*KUBIST, "exec", *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def test_command_reaches_the_server_by_its_kubeconfig() -> None:
    done = run("--", sys.executable, "-c", READ, "/api/v1/namespaces")
    assert done.returncode == 0, done.stderr
    names = [item["metadata"]["name"] for item in json.loads(done.stdout)["items"]]
    assert "default" in names


def test_clients_without_a_kubeconfig_have_address_token_and_authority() -> None:
    script = """
import os, ssl, urllib.request
context = ssl.create_default_context(cafile=os.environ["KUBIST_CA"])
headers = {"Authorization": "Bearer " + os.environ["KUBIST_TOKEN"]}
request = urllib.request.Request(os.environ["KUBIST_URL"] + "/kubist/v1/clock", headers=headers)
print(urllib.request.urlopen(request, context=context).status)
"""
    done = run("--", sys.executable, "-c", script)
    assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr


def test_help_names_the_defaults_of_a_temporary_server() -> None:
    text = " ".join(run("--help").stdout.split())
    assert "--secure-port int Port to listen on; 0 takes any free one. (default 0)" in text
    assert "--in-memory" not in text


def test_manifests_are_loaded_first(tmp_path: Path) -> None:
    manifest = tmp_path / "c.yaml"
    manifest.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}")
    path = "/api/v1/namespaces/default/configmaps/c"
    done = run("--load", str(manifest), "--", sys.executable, "-c", READ, path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["data"] == {"a": "b"}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -9 $$"], 137),
        (["no-such-command"], 127),
        (["/"], 126),
    ],
)
def test_exit_code_is_that_of_the_command(command: list[str], code: int) -> None:
    assert run("--", *command).returncode == code


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: UPPER}}")
    unknown = tmp_path / "unknown.yaml"
    unknown.write_text("{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}")
    for arguments, said in (
        ([], "no command"),
        (["kubectl", "get", "pods"], "put -- before the command: kubist exec -- kubectl get pods"),
        (
            ["--", "no-such-command"],
            "kubist: no-such-command cannot be run: there is no such command in PATH",
        ),
        (["--no-such-flag", "--", "true"], "no-such-flag"),
        (["--load", str(bad), "--", "true"], "UPPER"),
        (["--load", str(unknown), "--", "true"], "example.com/v1 Widget is not served"),
        (["--load", str(tmp_path / "missing.yaml"), "--", "true"], "missing.yaml"),
    ):
        done = run(*arguments)
        assert done.returncode != 0
        assert said in done.stderr and "Traceback" not in done.stderr


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    script = "import os, sys; open(sys.argv[1], 'w').write(os.environ['KUBECONFIG'])"
    note = tmp_path / "note"
    with mock.patch.dict(os.environ, {"TMPDIR": str(tmp_path)}):
        assert run("--", sys.executable, "-c", script, str(note)).returncode == 0
    assert Path(note.read_text()).is_relative_to(tmp_path)
    assert list(tmp_path.iterdir()) == [note]


def test_signal_during_the_start_leaves_nothing_behind(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*KUBIST, "exec", "--", "sh", "-c", "sleep 60"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for(lambda: any(tmp_path.iterdir()), 60)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + signal.SIGTERM, "")
    assert list(tmp_path.iterdir()) == []


def test_signal_is_passed_on_to_the_command(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = f"trap 'echo got it; exit 3' TERM; touch {shlex.quote(str(mark))}; while :; do sleep 0.05; done"
    with subprocess.Popen(
        [*KUBIST, "exec", "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True
    ) as process:
        wait_for(mark.exists, 60)
        os.kill(process.pid, signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    assert (out.strip(), process.returncode) == ("got it", 3)
