"""Modules that a start does not load. Start-up time matters most here: every test suite starts a server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kubist.base.http.tls.certificates import new_authority

SHOW = "print('\\n'.join(sys.modules), file=sys.stderr)"


def loaded(program: str, home: Path) -> set[str]:
    """Modules that are loaded after a program. Isolated, because site-packages may load modules of their own."""
    paths = [path for path in sys.path if path]
    code = f"import sys; sys.path[:0] = {paths!r}; {program}; {SHOW}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, cwd=home)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_client_of_the_helper_loads_no_other_python_module(tmp_path: Path) -> None:
    modules = loaded(
        "from kubist.testing.envtest.client import run; assert run('missing', '', []) is None", tmp_path
    )
    ours = {name for name in modules if name.partition(".")[0] == "kubist"}
    assert ours == {
        "kubist",
        "kubist.base",
        "kubist.base.version",
        "kubist.testing",
        "kubist.testing.envtest",
        "kubist.testing.envtest.client",
    }
    assert not modules & {"socket", "typing", "re", "enum", "json", "signal"}


def test_loaded_helper_has_no_threads_and_no_event_loop(tmp_path: Path) -> None:
    program = "from kubist.cli.warm import load_server; load_server(); import threading, asyncio"
    checks = "assert threading.active_count() == 1; assert asyncio._get_running_loop() is None"
    if Path("/proc/self/task").exists():  # Threads of libraries are listed only there.
        checks += "; import os; assert len(os.listdir('/proc/self/task')) == 1"
    modules = loaded(f"{program}; {checks}", tmp_path)
    assert {
        "kubist.api.application",
        "kubist.storage.memory",
        "kubist.api.filters.authentication.tokens",
        "ssl",
    } <= modules


def test_help_of_kube_apiserver_loads_no_server(tmp_path: Path) -> None:
    modules = loaded("from kubist.cli.kube_apiserver import main; main(['--help'])", tmp_path)
    assert "kubist.cli.flag_list" in modules
    assert not modules & {"asyncio", "dataclasses", "logging", "ssl", "orjson", "kubist.api.config"}


def test_stand_in_loads_no_other_python_module(tmp_path: Path) -> None:
    modules = loaded("from kubist.testing.envtest.etcd import main; main(['--help'])", tmp_path)
    ours = {name for name in modules if name.partition(".")[0] == "kubist"}
    assert ours == {
        "kubist",
        "kubist.base",
        "kubist.base.version",
        "kubist.testing",
        "kubist.testing.envtest",
        "kubist.testing.envtest.etcd",
    }
    assert not modules & {"socket", "typing", "re", "enum", "json"}


def test_server_starts_without_yaml_openapi_grpc_and_control_loops(tmp_path: Path) -> None:
    made = "from kubist.server.server import Server; from kubist.api.config import Config; Server(Config())"
    modules = loaded(made, tmp_path)
    assert "kubist.api.application" in modules
    assert not modules & {
        "yaml",
        "importlib.metadata",
        "grpc",
        "cryptography",
        "kubist.model.codec.yaml_emit",
        "kubist.api.discovery.openapi",
        "kubist.cluster.control.manager",
    }


def test_service_account_keys_load_no_x509(tmp_path: Path) -> None:
    new_authority("keys").save(tmp_path / "sa.crt", tmp_path / "sa.key")
    files = "service_account_key_file=('sa.crt',), service_account_signing_key_file='sa.key'"
    config = f"Config({files}, service_account_issuer=('https://issuer',))"
    made = f"from kubist.server.server import Server; from kubist.api.config import Config; Server({config})"
    modules = loaded(made, tmp_path)
    assert "kubist.api.filters.authentication.key_files" in modules
    assert "cryptography.x509" not in modules
