"""Errors of servers that cannot start: an exception of `kubist.errors` in a program, the same line on the command
line."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kubist
from kubist import errors, storage
from kubist.storage.sqlite.file import take_lock
from tests.cli.processes import check_one_line_error, running
from tests.cli.processes import kubist as command
from tests.live import Pki

JUNK = "junk\n" * 200


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def check(settings: dict[str, Any], kind: type[errors.StartError], *words: str) -> str:
    """Starts a server with these settings in a thread and in an event loop. Both must fail with this error."""
    with pytest.raises(errors.KubistError) as caught:
        kubist.Server(**settings).start()

    async def start_here() -> None:
        async with kubist.Server(**settings):
            pass

    with pytest.raises(errors.KubistError) as again:
        asyncio.run(start_here())
    for error in (caught.value, again.value):
        assert isinstance(error, kind)
        assert error.__cause__ is None and error.__suppress_context__
        assert all(word in str(error) for word in words), error
        assert "\n" not in str(error)
    return str(caught.value)


def check_command(home: Path, message: str, *flags: str) -> None:
    """Starts `kubist serve` with these flags. It must print the message and nothing else, except that the flag that
    names the file may precede it."""
    result = command("serve", *flags, home=home)
    assert result.returncode != 0
    assert result.stderr in (f"kubist: {message}\n", f"kubist: --data-dir: {message}\n")


def test_port_in_use(home: Path, taken_port: int) -> None:
    message = check({"secure_port": taken_port}, errors.PortInUse, f"port {taken_port} on 127.0.0.1 is taken")
    check_command(home, message, "--in-memory", f"--secure-port={taken_port}")
    check_command(home, message, "--in-memory", f"--secure-port={taken_port}", "--workers=2")


def test_data_directory_in_use(home: Path) -> None:
    data = home / "data"
    data.mkdir()
    lock = take_lock(str(data / "kubist.db"))
    try:
        message = check({"data_dir": str(data)}, errors.DataDirectoryInUse, "kubist.db is in use by another")
        check_command(home, message, f"--data-dir={data}", "--secure-port=0")
    finally:
        os.close(lock)


def test_data_directory_of_a_running_server(tmp_path: Path) -> None:
    with kubist.Server(data_dir=str(tmp_path), controllers=()):
        check({"data_dir": str(tmp_path)}, errors.DataDirectoryInUse, "is in use by another process")


def test_damaged_store(home: Path) -> None:
    data = home / "data"
    data.mkdir()
    (data / "kubist.db").write_text(JUNK)
    message = check({"data_dir": str(data)}, errors.DamagedStore, "the file is damaged", "kubist restore")
    check_command(home, message, f"--data-dir={data}", "--secure-port=0")
    assert (data / "kubist.db").read_text() == JUNK


@pytest.mark.parametrize("name", ["ca.crt", "apiserver.crt", "apiserver.key", "admin.crt"])
@pytest.mark.parametrize(
    "content", [JUNK, "-----BEGIN CERTIFICATE-----\nanVuaw==\n-----END CERTIFICATE-----\n"]
)
def test_unreadable_certificate(
    home: Path, made_data: Callable[[Path], None], name: str, content: str
) -> None:
    made_data(home / "data")
    (home / "data/pki" / name).write_text(content)
    message = check({"data_dir": str(home / "data")}, errors.CertificateError, name)
    check_command(home, message, f"--data-dir={home / 'data'}", "--secure-port=0")


@pytest.fixture(scope="module")
def made_data(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], None]:
    """Copies the data directory of a server that ran before."""
    source = tmp_path_factory.mktemp("made")
    with kubist.Server(data_dir=str(source), controllers=()):
        pass

    def copy(target: Path) -> None:
        (target / "pki").mkdir(parents=True)
        for path in (source / "pki").iterdir():
            (target / "pki" / path.name).write_bytes(path.read_bytes())

    return copy


def test_missing_certificate_files_are_named(home: Path, server_pki: Pki) -> None:
    (home / "junk.crt").write_text(JUNK)
    good = server_pki.path("tls.crt")
    for arguments, words in (
        (["--tls-cert-file=absent.crt", "--tls-private-key-file=tls.key"], "absent.crt: No such file"),
        ([f"--tls-cert-file={good}", "--tls-private-key-file=tls.key"], "tls.key: No such file"),
        (["--tls-cert-file=junk.crt", "--tls-private-key-file=junk.crt"], "not a certificate and its key"),
        (["--client-ca-file=absent.ca"], "absent.ca: No such file"),
    ):
        check_one_line_error(home, arguments, words)


def test_data_directory_that_is_a_file(home: Path) -> None:
    (home / "file").write_text("")
    message = check({"data_dir": str(home / "file")}, errors.StartError, "file is not a directory")
    check_command(home, message, f"--data-dir={home / 'file'}")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"secure_port": "abc"}, "secure_port must be a whole number, not 'abc'"),
        ({"secure_port": True}, "secure_port must be a whole number, not True"),
        ({"secure_port": 70000}, "secure_port must be a port number, from 0 to 65535, not 70000"),
        ({"bind_address": "nowhere"}, "bind_address must be an IP address, not 'nowhere'"),
        ({"bind_address": "192.0.2.1"}, "192.0.2.1 is not an address of this machine"),
        ({"service_cluster_ip_range": "10.0.0.0/99"}, "service_cluster_ip_range: "),
        ({"token_auth_file": "tokens.csv"}, "token_auth_file cannot be set"),
        ({"tls_cert_file": "tls.crt"}, "tls_cert_file cannot be set"),
        ({"workloads": "yes"}, "workloads must be True or False, not 'yes'"),
        ({"workload_delay": "1s"}, "workload_delay must be a number, not '1s'"),
        ({"data_dir": 3}, "data_dir must be a string, not 3"),
        ({"controllers": "*"}, "controllers must be a tuple of strings, not '*'"),
        ({"controllers": ("foo",)}, "'foo' is not a controller"),
        ({"feature_gates": ["A"]}, "feature_gates must be a dict, not ['A']"),
        ({"feature_gates": {"Nope": True}}, "unrecognized feature gate: Nope"),
        ({"enable_admission_plugins": ("Nope",)}, '"Nope" is unknown'),
        ({"runtime_config": {"apps/v1": "maybe"}}, "invalid value of apps/v1: maybe"),
        ({"encryption_provider_config": "absent.yaml"}, "absent.yaml: No such file or directory"),
        ({"workloads": True, "workload_node_capacity": {"cpu": "few"}}, '"few" is not an amount of cpu'),
        ({"workloads": True, "stages": ("absent.yaml",)}, "absent.yaml: No such file or directory"),
    ],
)
def test_invalid_settings(settings: dict[str, Any], message: str) -> None:
    check(settings, errors.StartError, message)


def test_failed_start_can_be_repeated(taken_port: int) -> None:
    server = kubist.Server(secure_port=taken_port, controllers=())
    for _ in range(2):
        with pytest.raises(kubist.errors.PortInUse):
            server.start()
    with pytest.raises(RuntimeError, match="the server is not running"):
        _ = server.url


@pytest.mark.parametrize("module", ["grpc", "google.protobuf"])
def test_etcd_without_its_packages(home: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    for name in [name for name in sys.modules if name.startswith(("kubist.storage.etcd", f"{module}."))]:
        monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr(storage, name.rpartition(".")[2], raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    message = check(
        {"etcd_servers": ("http://127.0.0.1:1",)},
        errors.MissingDependency,
        "--etcd-servers needs grpcio and protobuf, which are not installed: `",
        "'kubist[etcd]'` installs them",
    )
    check_command(home, message, "--etcd-servers=http://127.0.0.1:1", "--secure-port=0", "--data-dir=data")
    # Workers are forked, which the threads of this process do not survive.
    missing = f"import sys; sys.modules[{module!r}] = None; from kubist.cli import main; sys.exit(main())"
    flags = ("--etcd-servers=http://127.0.0.1:1", "--secure-port=0", "--workers=2")
    with running(home, "serve", *flags, program=("-c", missing)) as process:
        assert process.process.wait(30) == errors.MissingDependency.exit_code
        assert process.output == f"kubist: {message}\n"
    check_one_line_error(home, ["--etcd-servers=http://127.0.0.1:1"], message)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path
