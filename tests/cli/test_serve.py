"""`kubist serve` from a user's view: no configuration needed, one line for each error."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import stat
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubist.server.runtime import kubeconfig
from tests.cli.processes import Running, kubist, port_of, running
from tests.waiting import wait_for

READY = r"serves Kubernetes v1\.36 on (https://\S+)"


def ask(kubeconfig: Path, path: str, method: str = "GET", body: Any = None, *, text: bool = False) -> Any:
    """Request with the credentials of a kubeconfig. The server's certificate is verified."""
    document = yaml.safe_load(kubeconfig.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    pki = kubeconfig.parent / "pki"
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    assert "certificate-authority-data" in cluster and "client-key-data" in user
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(
        cluster["server"] + path, data, {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request, context=context, timeout=20) as answer:
        content = answer.read()
        return content.decode() if text else json.loads(content)


def one_line(result: Any, *words: str, code: int = 1) -> None:
    """Asserts the exit code and exactly one clear line."""
    assert result.returncode == code, result
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("kubist: "), result.stderr
    for word in words:
        assert word in lines[0]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "Pods do not run: --workloads simulates nodes, a scheduler and the workload controllers."),
        (["--workloads"], "Pods are simulated: no container runs."),
    ],
)
def test_serve_says_whether_pods_run(home: Path, arguments: list[str], line: str) -> None:
    with running(home, "serve", "--in-memory", "--secure-port=0", *arguments) as server:
        assert server.wait_for("Pods +(Pods .*)") == line
        assert server.stop() == 0


def test_serve_keeps_its_data_and_stops_on_ctrl_c(home: Path) -> None:
    data = home / "data dir"
    for round_ in range(2):
        with running(home, "serve", "--data-dir", str(data), "--secure-port=0") as server:
            url = server.wait_for(READY)
            shown = server.wait_for(r"export KUBECONFIG=(.+)")
            assert shown == f"'{data / 'kubeconfig'}'"
            assert url.endswith(str(port_of(data / "kubeconfig")))
            maps = "/api/v1/namespaces/default/configmaps"
            if round_ == 0:
                ask(data / "kubeconfig", maps, "POST", {"metadata": {"name": "kept"}})
            assert ask(data / "kubeconfig", f"{maps}/kept")["metadata"]["name"] == "kept"
            assert server.stop() == 0
            assert "Traceback" not in server.output
    assert stat.S_IMODE((data / "kubeconfig").stat().st_mode) == 0o600
    assert stat.S_IMODE((data / "pki/ca.key").stat().st_mode) == 0o600


def test_default_data_dir_is_in_the_users_home(home: Path) -> None:
    with running(home, "serve", "--secure-port", "0") as server:
        server.wait_for(READY)
        assert server.stop(signal.SIGTERM) == 0
    assert (home / ".local/share/kubist/kubist.db").exists()
    printed = kubist("kubeconfig", home=home)
    assert printed.returncode == 0
    assert printed.stdout == (home / ".local/share/kubist/kubeconfig").read_text()
    merged = kubist("kubeconfig", "--merge", home=home)
    assert str(home / ".kube/config") in merged.stdout
    assert yaml.safe_load((home / ".kube/config").read_text())["current-context"] == "kubist"


def test_in_memory_writes_no_data(home: Path) -> None:
    with running(home, "serve", "--in-memory", "--secure-port=0") as server:
        server.wait_for(READY)
        kubeconfig = Path(server.wait_for(r"export KUBECONFIG=(\S+)"))
        assert ask(kubeconfig, "/api/v1/namespaces/default")["metadata"]["name"] == "default"
        assert server.stop() == 0
    assert not kubeconfig.exists()
    assert not (home / ".local").exists()


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_leaves_no_temporary_files(home: Path, temporary: Path, number: int, workers: str) -> None:
    """SIGHUP comes when the terminal is closed."""
    arguments = ("serve", "--in-memory", "--secure-port=0", "--workers", workers)
    with running(home, *arguments) as server:
        wait_for(lambda: any(temporary.glob("kubist-*/*")), 30)  # long before the server handles signals
        server.stop(number)
    assert list(temporary.iterdir()) == []
    with running(home, *arguments) as server:
        server.wait_for(READY)
        assert server.stop(number) == 0
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("workers", ["1", "2"])
def test_server_under_nohup_ignores_that_its_terminal_is_closed(home: Path, workers: str) -> None:
    ignores = (
        "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); from kubist.cli import main; "
    )
    program = ("-c", f"{ignores} sys.exit(main())")
    arguments = ("serve", "--data-dir=data", "--secure-port=0", "--workers", workers)
    with running(home, *arguments, program=program) as server:
        server.wait_for(READY)
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert ask(home / "data/kubeconfig", "/readyz", text=True) == "ok"
        assert server.stop(signal.SIGTERM) == 0


def test_in_memory_starts_from_a_backup(home: Path) -> None:
    data, backup = home / "data", home / "backup"
    maps = "/api/v1/namespaces/default/configmaps"
    with running(home, "serve", "--data-dir", str(data), "--secure-port=0") as server:
        server.wait_for(READY)
        made = ask(data / "kubeconfig", maps, "POST", {"metadata": {"name": "kept"}})
        assert kubist("backup", "--data-dir", str(data), "--file", str(backup), home=home).returncode == 0
        server.stop()
    content = backup.read_bytes()
    with running(home, "serve", "--in-memory", "--secure-port=0", "--snapshot", str(backup)) as server:
        server.wait_for(READY)
        kubeconfig = Path(server.wait_for(r"export KUBECONFIG=(\S+)"))
        assert ask(kubeconfig, f"{maps}/kept") == made
        ask(kubeconfig, f"{maps}/kept", "DELETE")
        server.stop()
    assert backup.read_bytes() == content
    one_line(kubist("serve", "--snapshot", str(backup), home=home), "--snapshot needs --in-memory", code=2)
    missing = kubist("serve", "--in-memory", "--secure-port=0", "--snapshot", str(home / "none"), home=home)
    one_line(missing, str(home / "none"), "does not exist")
    (home / "text").write_text("no database")
    damaged = kubist("serve", "--in-memory", "--secure-port=0", f"--snapshot={home / 'text'}", home=home)
    one_line(damaged, str(home / "text"), "is not a usable backup", code=4)


def test_certificate_is_reissued_for_another_address(home: Path) -> None:
    data = home / "data"
    for address in ("127.0.0.1", "127.0.0.9"):
        with running(
            home, "serve", "--data-dir", str(data), "--secure-port=0", f"--bind-address={address}"
        ) as server:
            server.wait_for(READY)
            assert ask(data / "kubeconfig", "/version")["minor"] == "36"
            server.stop()


def test_merged_kubeconfig_keeps_existing_entries(home: Path) -> None:
    mine = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "work", "cluster": {"server": "https://work"}}, {"name": "kubist"}],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me"}}],
        "current-context": "work",
        "preferences": {"colors": True},
    }
    (home / ".kube").mkdir()
    (home / ".kube/config").write_text(yaml.safe_dump(mine))
    with running(home, "serve", "--in-memory", "--kubeconfig-merge", "--secure-port=0") as server:
        url = server.wait_for(READY)
        assert "Added the context 'kubist' to" in server.output
        server.stop()
    merged = yaml.safe_load((home / ".kube/config").read_text())
    assert merged["current-context"] == "work" and merged["preferences"] == {"colors": True}
    assert [item["name"] for item in merged["clusters"]] == ["work", "kubist"]
    assert merged["clusters"][1]["cluster"]["server"] == url
    assert merged["users"][0] == mine["users"][0]  # type: ignore[index]
    assert [item["name"] for item in merged["contexts"]] == ["work", "kubist"]


def test_merge_waits_for_a_change_by_kubectl(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """kubectl creates the lock, reads the kubeconfig, writes it and deletes the lock."""
    mine, lock = home / ".kube/config", home / ".kube/config.lock"
    monkeypatch.setenv("KUBECONFIG", str(mine))
    mine.parent.mkdir()
    lock.touch()
    ours = kubeconfig.document("https://127.0.0.1:1", b"", b"", b"")
    with ThreadPoolExecutor(1) as pool:
        merging = pool.submit(kubeconfig.merge, ours)
        time.sleep(0.2)
        assert not merging.done() and not mine.exists()
        mine.write_text("{users: [{name: new}]}")
        lock.unlink()
        merging.result(60)
    assert [user["name"] for user in yaml.safe_load(mine.read_text())["users"]] == ["new", "kubist-admin"]
    assert not lock.exists()
    lock.touch()
    monkeypatch.setattr(kubeconfig, "LOCK_WAIT", 0.1)
    with pytest.raises(ValueError, match="another program is changing"):
        kubeconfig.merge(ours)
    assert lock.exists()


def test_taken_port_prints_one_line_error(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = kubist("serve", "--in-memory", f"--secure-port={port}", home=home)
    one_line(result, f"port {port} on 127.0.0.1 is taken", "--secure-port", code=5)


def test_locked_store_prints_one_line_error(home: Path) -> None:
    with running(home, "serve", "--data-dir=data", "--secure-port=0") as server:
        server.wait_for(READY)
        second = kubist("serve", "--data-dir=data", "--secure-port=0", home=home)
        one_line(second, "in use by another process", "kubist stop --data-dir", code=6)
        assert server.stop() == 0


@pytest.mark.parametrize("content", [b"not a database at all\n" * 100, os.urandom(50_000)])
def test_corrupt_store_prints_one_line_error(home: Path, content: bytes) -> None:
    (home / "data").mkdir()
    (home / "data/kubist.db").write_bytes(content)
    done = kubist("serve", "--data-dir=data", "--secure-port=0", home=home)
    one_line(done, "kubist.db cannot be opened", code=4)
    assert (home / "data/kubist.db").read_bytes() == content


def test_unusable_data_dir_prints_one_line_error(home: Path) -> None:
    (home / "file").write_text("")
    one_line(kubist("serve", "--data-dir=file", home=home), "file is not a directory")
    one_line(kubist("serve", "--data-dir=file/below", home=home), "file is not a directory")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_data_dir_prints_one_line_error(home: Path) -> None:
    (home / "data").mkdir(mode=0o500)
    one_line(kubist("serve", "--data-dir=data", home=home), "Permission denied")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--nope"], ["unknown flag: --nope"]),
        (["word"], ["unexpected argument 'word'"]),
        (["--secure-port"], ["flag needs an argument: --secure-port"]),
        (["--secure-port=x"], ['"x"', "--secure-port", "whole number"]),
        (["--secure-port=70000"], ["from 0 to 65535"]),
        (["--bind-address=x"], ["--bind-address"]),
        (["--service-cluster-ip-range=x"], ["--service-cluster-ip-range"]),
        (["--service-node-port-range=9-1"], ["range of ports"]),
        (["--event-ttl=soon"], ['invalid duration "soon"']),
        (["--in-memory", "--controllers=foo"], ["--controllers", "'foo' is not a controller", "namespace, "]),
        (["--in-memory", "--controllers=*,-foo"], ["'foo' is not a controller", "garbagecollector, "]),
        (["--in-memory", "--data-dir=data"], ["--in-memory contradicts --data-dir"]),
        (["--in-memory=true", "--data-dir", "data"], ["--in-memory contradicts --data-dir"]),
        (["--in-memory", "--etcd-servers=http://127.0.0.1:1"], ["--in-memory contradicts --etcd-servers"]),
        (["--in-memory=1", "--data-dir=data"], ["--in-memory contradicts --data-dir"]),
        (["--in-memory=yes"], ["--in-memory", "true or false"]),
        (["--kubeconfig-merge=maybe"], ["--kubeconfig-merge", "true or false"]),
        (["--etcd-cafile=ca.crt"], ["--etcd-cafile needs --etcd-servers"]),
        (["--workload-delay=1s"], ["--workload-delay needs --workloads"]),
        (["--workload-nodes=3"], ["--workload-nodes needs --workloads"]),
        (["--workloads", "--workload-node-labels=z={j}"], ['label z: "{j}" has an unknown placeholder']),
        (["--workloads", "--workload-node-capacity=cpu=few"], ['"few" is not an amount of cpu']),
        (["--stages=a.yaml"], ["--stages needs --workloads"]),
        (["--workloads", "--stages=absent.yaml"], ["--stages: absent.yaml: No such file or directory"]),
        (["--workers=0"], ["--workers", "from 1 to 64"]),
        (["--workers=-1"], ["--workers", "from 1 to 64"]),
    ],
)
def test_invalid_flag_prints_one_line_error(home: Path, flags: list[str], words: list[str]) -> None:
    one_line(kubist("serve", *flags, home=home), *words, code=2)


@pytest.mark.parametrize(
    ("flags", "words", "code"),
    [
        (["--bind-address=192.0.2.1", "--secure-port=0"], ["not an address of this machine"], 1),
        (["--enable-admission-plugins=Nope"], ['"Nope" is unknown'], 2),
    ],
)
def test_failed_start_prints_one_line_error(
    home: Path, flags: list[str], words: list[str], code: int
) -> None:
    one_line(kubist("serve", "--in-memory", *flags, home=home), *words, code=code)


def test_unknown_command_points_to_the_help(home: Path) -> None:
    result = kubist("nope", home=home)
    assert result.returncode == 2 and "kubist --help" in result.stderr
    for flag in ("--help", "-h", "help"):
        assert "kubist serve" in kubist(flag, home=home).stdout
    assert "v1.36" in kubist("version", home=home).stdout


def test_ctrl_c_ends_watches_and_answers_accepted_writes(home: Path) -> None:
    data = home / "data"
    with running(home, "serve", "--data-dir=data", "--secure-port=0") as server:
        server.wait_for(READY)
        answered, refused = write_until_stopped(server, data)
        assert server.process.returncode == 0
        assert "Traceback" not in server.output
    assert answered and refused
    with running(home, "serve", "--data-dir=data", "--secure-port=0") as server:
        server.wait_for(READY)
        held = ask(data / "kubeconfig", "/api/v1/namespaces/default/configmaps")["items"]
        assert answered <= {item["metadata"]["name"] for item in held}
        server.stop()


def write_until_stopped(server: Running, data: Path) -> tuple[set[str], int]:
    """Names in answered writes, and number of rejected writers, while the server is stopped."""
    answered: set[str] = set()
    refused: list[OSError] = []
    watch_ended = threading.Event()
    maps = "/api/v1/namespaces/default/configmaps"

    def write(number: int) -> None:
        for step in range(10_000):
            try:
                ask(data / "kubeconfig", maps, "POST", {"metadata": {"name": f"w{number}-{step}"}})
            except OSError as error:
                refused.append(error)
                return
            answered.add(f"w{number}-{step}")

    def watch() -> None:
        pki = data / "pki"
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        url = f"https://127.0.0.1:{port_of(data / 'kubeconfig')}{maps}?watch=1&resourceVersion=0"
        with urllib.request.urlopen(url, context=context, timeout=20) as stream:
            for line in stream:
                assert json.loads(line)["type"] in ("ADDED", "MODIFIED")
        watch_ended.set()

    threads = [threading.Thread(target=write, args=(n,), daemon=True) for n in range(4)]
    threads.append(threading.Thread(target=watch, daemon=True))
    for thread in threads:
        thread.start()
    while len(answered) < 20:
        assert all(thread.is_alive() for thread in threads)
    server.stop()
    for thread in threads:
        thread.join(10)
    assert watch_ended.is_set()
    return answered, len(refused)
