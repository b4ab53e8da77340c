"""`kubist envtest --warm`: a helper process forks the servers of kube-apiserver executables."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubist.cli.envtest import make_assets
from kubist.testing.envtest import client, warm
from kubist.testing.envtest.assets import identity, import_paths, socket_path
from tests.cli.processes import kubist
from tests.envtest.conftest import ControlPlane, is_free, stop
from tests.waiting import wait_for

pytestmark = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="lists processes in /proc")


def processes(directory: Path) -> set[int]:
    """Helper for a directory, and the servers that it forked. They have the same command line."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"main({str(directory)!r}".encode() in (entry / "cmdline").read_bytes():
                    found.add(int(entry.name))
            except OSError:
                continue
    return found


@pytest.fixture(scope="module")
def warm_assets() -> Iterator[Path]:
    """Assets with a running helper. Their path is short, as the path of a socket must be."""
    directory = Path(tempfile.mkdtemp(prefix="warm-", dir="/tmp"))
    result = kubist("envtest", "--warm", str(directory), home=directory)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"export KUBEBUILDER_ASSETS={directory}\n"
    yield directory
    shutil.rmtree(directory)
    wait_for(lambda: not processes(directory), 60)


@pytest.fixture
def plane(warm_assets: Path, tmp_path: Path) -> Iterator[ControlPlane]:
    plane = ControlPlane(warm_assets, tmp_path)
    plane.start_etcd()
    yield plane
    plane.close()


def servers(plane: ControlPlane) -> set[int]:
    """Forked servers."""
    return processes(plane.assets) - {helper(plane.assets)}


def helper(directory: Path) -> int:
    """The process of a directory whose parent is none of the others."""
    found = {number: parent(number) for number in processes(directory)}
    (first,) = (number for number, above in found.items() if above and above not in found)
    return first


def parent(number: int) -> int:
    """Parent of a process; 0 if the process has ended."""
    try:
        return int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_helper_forks_the_server_of_an_executable(plane: ControlPlane) -> None:
    process = plane.start_apiserver()
    plane.wait_until_ready()
    assert len(servers(plane)) == 1
    created = plane.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    assert created[0] == 201
    assert "serving on 127.0.0.1" in plane.log.read_text()
    assert stop(process) == 0
    assert is_free(plane.port)
    wait_for(lambda: not servers(plane))


def test_server_ends_when_its_client_is_killed(plane: ControlPlane) -> None:
    process = plane.start_apiserver()
    plane.wait_until_ready()
    assert stop(process, signal.SIGKILL) == -signal.SIGKILL
    wait_for(lambda: not servers(plane) and is_free(plane.port))


def test_interrupt_stops_the_server(plane: ControlPlane) -> None:
    process = plane.start_apiserver()
    plane.wait_until_ready()
    assert stop(process, signal.SIGINT) == 0


def test_servers_share_nothing(warm_assets: Path, tmp_path: Path) -> None:
    planes = []
    try:
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            plane = ControlPlane(warm_assets, tmp_path / name)
            planes.append(plane)
            plane.start_etcd()
            plane.start_apiserver()
        for plane in planes:
            plane.wait_until_ready()
        first, second = planes
        assert first.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "only-here"}})[0] == 201
        assert second.ask("GET", "/api/v1/namespaces/only-here")[0] == 404
        spaces = [plane.ask("GET", "/api/v1/namespaces/kube-system")[1] for plane in planes]
        assert spaces[0]["metadata"]["uid"] != spaces[1]["metadata"]["uid"]
        assert stop(first.processes[-1]) == 0
        assert second.ask("GET", "/readyz")[0] == 200
    finally:
        for plane in planes:
            plane.close()


def test_environment_of_the_client_counts(warm_assets: Path, tmp_path: Path) -> None:
    plane = ControlPlane(warm_assets, tmp_path, KUBIST_CONTROLLERS="unheard-of")
    try:
        plane.start_etcd()
        assert plane.start_apiserver().wait(60) == 1
        assert "KUBIST_CONTROLLERS" in plane.log.read_text()
    finally:
        plane.close()


def run(executable: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [executable, *arguments],
        cwd=cwd,
        text=True,
        capture_output=True,
        timeout=60,
    )


def test_output_and_exit_code_are_those_of_a_normal_start(warm_assets: Path, tmp_path: Path) -> None:
    make_assets(tmp_path / "cold")
    for arguments in (["--version"], ["--unknown"], ["--service-account-key-file=keys", "--secure-port=0"]):
        forked = run(warm_assets / "kube-apiserver", *arguments, cwd=tmp_path)
        normal = run(tmp_path / "cold" / "kube-apiserver", *arguments, cwd=tmp_path)
        assert (forked.returncode, forked.stdout) == (normal.returncode, normal.stdout)
        assert forked.stderr.splitlines()[-1:] == normal.stderr.splitlines()[-1:]


def test_relative_paths_are_relative_to_the_client(plane: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "tokens.csv").write_text("secret,jane,1\n")
    plane.start_apiserver("--token-auth-file=tokens.csv")
    plane.wait_until_ready()


def test_helper_is_private_and_runs_once(warm_assets: Path) -> None:
    path = socket_path(warm_assets)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first = helper(warm_assets)
    assert kubist("envtest", "--warm", str(warm_assets), home=warm_assets).returncode == 0
    assert helper(warm_assets) == first


def test_client_of_another_version_is_not_served(warm_assets: Path) -> None:
    assert warm.is_running(warm_assets, identity())
    assert not warm.is_running(warm_assets, "another version")
    assert client.run(str(socket_path(warm_assets)), "another version", []) is None


def test_client_without_a_helper_starts_the_server_itself(tmp_path: Path) -> None:
    assert client.run(str(tmp_path / "missing"), identity(), []) is None
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        assert client.run(str(tmp_path / "s"), identity(), []) is None


@pytest.fixture
def short_path() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="warm-", dir="/tmp"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def start_bare_helper(directory: Path, idle: float, *, first: str = "") -> None:
    """Helper whose servers only return a number, so that nothing is loaded. It runs the statement `first` before."""
    program = f"""
import os, signal, sys
{first}
sys.path += {import_paths()!r}
from pathlib import Path
from kubist.testing.envtest.warm import serve
def main(directory): sys.exit(serve(Path(directory), {identity()!r}, lambda arguments: len(arguments), {idle}))
main({str(directory)!r})
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_helper_ends_when_idle(short_path: Path) -> None:
    start_bare_helper(short_path, 0.5)
    wait_for(lambda: not processes(short_path), 60)
    assert not socket_path(short_path).parent.exists()


def test_helper_ends_when_its_folder_is_removed(short_path: Path) -> None:
    start_bare_helper(short_path, 600.0)
    assert warm.is_running(short_path, identity())
    shutil.rmtree(short_path)
    wait_for(lambda: not processes(short_path), 60)


def test_new_helper_replaces_the_old_one(short_path: Path) -> None:
    start_bare_helper(short_path, 600.0)
    old = helper(short_path)
    start_bare_helper(short_path, 600.0)
    wait_for(lambda: old not in processes(short_path), 60)
    assert warm.is_running(short_path, identity())
    os.kill(helper(short_path), signal.SIGTERM)
    wait_for(lambda: not processes(short_path), 60)
    assert not socket_path(short_path).exists()


def test_signal_during_a_fork_ends_the_helper(short_path: Path) -> None:
    """Python ignores exceptions in a hook of os.fork, also those of a signal handler that runs there."""
    kill = "os.kill(os.getpid(), signal.SIGTERM) if os.path.exists('fork') else None"
    start_bare_helper(
        short_path,
        600.0,
        first=f"os.chdir({str(short_path)!r}); os.register_at_fork(after_in_parent=lambda: {kill})",
    )
    (short_path / "fork").touch()
    assert warm.is_running(short_path, identity())
    wait_for(lambda: not processes(short_path), 60)


def test_directory_that_others_can_use_is_rejected(short_path: Path) -> None:
    make_assets(short_path)
    (short_path / "warm").mkdir()
    (short_path / "warm").chmod(0o755)
    result = kubist("envtest", "--warm", str(short_path), home=short_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert "must be a directory that only its owner can use (mode 0700)" in result.stderr


def test_directory_with_a_long_path_is_rejected(tmp_path: Path) -> None:
    result = kubist("envtest", "--warm", "x" * 100, home=tmp_path)
    assert result.returncode == 1
    assert "too long for a Unix socket" in result.stderr
