"""Writes the assets: executables that start this installation of Kubist. They may be copied."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

import kubist
from kubist.api.config import KUBERNETES_VERSION
from kubist.base import files
from kubist.testing.envtest import etcd

_EXECUTABLE = """\
#!/bin/sh
# Made by `kubist envtest`. Run it again after Kubist or Python was updated or has moved.
''':'
{preface}exec {python} -I -S "$0" "$@"
'''
import sys

sys.argv[0] = {name!r}
sys.path += {paths!r}  # After the standard library, which is searched more often.
{program}
"""
"""Program for the shell, which runs the same file as a Python program: there the first part is a string."""
_ETCD = """\
from kubist.testing.envtest.etcd import main

sys.exit(main(sys.argv[1:]))"""
_KUBE_APISERVER = """\
from kubist.testing.envtest.client import run

code = run({socket!r}, {identity!r}, sys.argv[1:])
if code is None:
    from kubist.cli.kube_apiserver import main

    code = main(sys.argv[1:])
sys.exit(code)"""
"""Uses the helper of `kubist envtest --warm` if it runs."""
_HELP = """\
if [ "$*" = --help ]; then
PATH="$PATH:/bin:/usr/bin" cat <<'END_OF_HELP'
{text}END_OF_HELP
exit
fi
"""
"""Answers `--help` without Python, because test libraries ask for it before every start."""
_NO_KUBECTL = """\
#!/bin/sh
# Made by `kubist envtest`.
echo "kubectl was not on PATH when kubist envtest made $0. Install kubectl, then run: kubist envtest {directory}" >&2
exit 127
"""
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def write_assets(directory: Path, help_text: str) -> None:
    """Writes the executables to a directory, and to `k8s/VERSION-OS-ARCH` in it, where setup-envtest and the libraries
    for Java look for them. Files that are already correct are not touched. `help_text`: the output of `kube-apiserver
    --help`."""
    server = _KUBE_APISERVER.format(socket=str(socket_path(directory)), identity=identity())
    for target in (directory, directory / "k8s" / release()):
        files.make_directory(target, files.PROGRAM_DIRECTORY_MODE)
        _write(target / "kube-apiserver", _executable("kube-apiserver", server, _HELP.format(text=help_text)))
        _write(target / "etcd", _executable("etcd", _ETCD, _HELP.format(text=etcd.usage())))
        _provide_kubectl(target / "kubectl", directory)


def socket_path(directory: Path) -> Path:
    """Socket of the helper of `kubist envtest --warm`."""
    return directory / "warm" / "socket"


def identity() -> str:
    """Version and places of Kubist and Python. A helper serves only executables with the same identity."""
    return f"{kubist.__version__} {Path(kubist.__file__).parent} {sys.executable} {sys.version}"


def release() -> str:
    """Version and platform in the form of setup-envtest, such as `1.36.4-linux-amd64`."""
    machine = platform.machine().lower()
    return f"{KUBERNETES_VERSION[1:]}-{sys.platform}-{_MACHINES.get(machine, machine)}"


def _executable(name: str, program: str, preface: str = "") -> str:
    return _EXECUTABLE.format(
        preface=preface,
        python=shlex.quote(sys.executable),
        name=name,
        paths=import_paths(),
        program=program,
    )


def import_paths() -> list[str]:
    """Directories of Kubist and its dependencies. The executables skip `site`, which saves start-up time."""
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    standard |= {str(Path(path) / "lib-dynload") for path in standard}
    own = str(Path(kubist.__file__).parents[1])
    listed = (
        sys.path if sys.flags.safe_path else sys.path[1:]
    )  # The first one is the directory of the command.
    others = [path for path in listed if os.path.isabs(path) and os.path.isdir(path) and path not in standard]
    return list(dict.fromkeys([own, *others]))


def _provide_kubectl(target: Path, directory: Path) -> None:
    """Links the kubectl of PATH. Without one, writes an executable that reports its absence."""
    kubectl = _installed_kubectl(directory)
    if kubectl is None:
        _write(target, _NO_KUBECTL.format(directory=shlex.quote(str(directory))))
    elif not target.is_symlink() or os.readlink(target) != kubectl:
        draft = Path(tempfile.mkdtemp(dir=target.parent)) / "kubectl"
        draft.symlink_to(kubectl)
        draft.replace(target)
        draft.parent.rmdir()


def _installed_kubectl(directory: Path) -> str | None:
    """Path of the user's kubectl, not of one in the assets."""
    for folder in os.get_exec_path():
        kubectl = shutil.which("kubectl", path=folder)
        if kubectl is not None and directory.resolve() not in Path(os.path.abspath(kubectl)).parents:
            return os.path.abspath(kubectl)
    return None


def _write(path: Path, content: str) -> None:
    """Writes an executable whole or not at all, because a test may start it at the same time."""
    if not path.is_symlink() and path.is_file() and os.access(path, os.X_OK) and path.read_text() == content:
        return
    with files.draft(path) as draft:
        draft.write_text(content)
        draft.chmod(0o755)
