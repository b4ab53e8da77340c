"""The stand-in of etcd."""

from __future__ import annotations

import signal
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from kubist.testing.envtest.etcd import FlagError, parse
from tests.envtest.conftest import ControlPlane, NewControlPlane, is_free, stop
from tests.waiting import wait_for

URL = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--listen-client-urls=" + URL,),
        ("-listen-client-urls=" + URL,),
        ("--listen-client-urls", URL),
        ("-listen-client-urls", URL),
        (
            "-data-dir",
            "d",
            "-wal-dir",
            "w",
            "--initial-cluster",
            "default=http://b",
            "--listen-client-urls",
            URL,
        ),
        ("--unsafe-no-fsync", "--pre-vote=false", "--listen-client-urls", URL, "--force-new-cluster"),
        ("--experimental-something-new=1", "--listen-client-urls", URL),
    ],
)
def test_flags_take_one_dash_or_two_and_values_after_space_or_equals_sign(arguments: tuple[str, ...]) -> None:
    assert parse(arguments)["listen-client-urls"] == URL


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--no-such-flag",), "flag provided but not defined: -no-such-flag"),
        (("--data-dir",), "flag needs an argument: -data-dir"),
        (("word",), "unexpected argument 'word'"),
    ],
)
def test_wrong_flags_are_errors(arguments: tuple[str, ...], why: str) -> None:
    with pytest.raises(FlagError, match=why):
        parse(arguments)


def run(assets: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(assets / "etcd"), *arguments], capture_output=True, text=True, timeout=30)


def test_help_lists_flags_as_envtest_searches_them(assets: Path) -> None:
    result = run(assets, "--help")
    assert result.returncode == 0
    assert "\n  --unsafe-no-fsync\n" in result.stdout


def test_version_is_printed(assets: Path) -> None:
    assert run(assets, "--version").stdout.startswith("etcd Version: 3.")


@pytest.mark.parametrize("url", ["https://127.0.0.1:1", "127.0.0.1:1", "http://127.0.0.1"])
def test_url_that_cannot_be_served_is_an_error(assets: Path, url: str) -> None:
    result = run(assets, "--listen-client-urls", url)
    assert result.returncode == 1
    assert url in result.stderr


def test_taken_port_is_an_error(assets: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run(assets, f"--listen-client-urls=http://127.0.0.1:{taken.getsockname()[1]}")
    assert result.returncode == 1
    assert "Address already in use" in result.stderr


def get(plane: ControlPlane, path: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{plane.etcd_port}{path}", timeout=20) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
    except OSError:
        return 0, b""


def test_health_checks_are_answered(control_plane: NewControlPlane) -> None:
    plane = control_plane()
    plane.start_etcd()
    wait_for(lambda: get(plane, "/health")[0] == 200)
    assert get(plane, "/health") == (200, b'{"health":"true","reason":""}')
    assert get(plane, "/readyz?verbose") == (200, b"ok\n")
    assert b'"etcdserver":"3.' in get(plane, "/version")[1]
    assert get(plane, "/v3/kv/range")[0] == 404


def test_connection_without_a_request_does_not_block_others(control_plane: NewControlPlane) -> None:
    plane = control_plane()
    plane.start_etcd()
    wait_for(lambda: get(plane, "/health")[0] == 200)
    with socket.create_connection(("127.0.0.1", plane.etcd_port)):
        assert get(plane, "/health")[0] == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_signal_leaves_no_port_and_no_file(control_plane: NewControlPlane, number: int) -> None:
    plane = control_plane()
    process = plane.start_etcd()
    wait_for(lambda: get(plane, "/health")[0] == 200)
    stop(process, number)
    assert is_free(plane.etcd_port)
    assert sorted(path.name for path in plane.home.iterdir()) == ["certificates", "log"]
    assert plane.log.read_text() == ""
