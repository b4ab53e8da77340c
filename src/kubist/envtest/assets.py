"""Writes the assets: executables that start this installation of Kubist, wherever they are copied to."""

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
from kubist import files
from kubist.config import KUBERNETES_VERSION

_EXECUTABLE = """\
#!/bin/sh
# Made by `kubist envtest`. Run it again after Kubist or Python has moved.
'''exec' {python} -I -S "$0" "$@"
'''
import sys

sys.argv[0] = {name!r}
sys.path[:0] = {paths!r}
from {module} import main

sys.exit(main(sys.argv[1:]))
"""
_NO_KUBECTL = """\
#!/bin/sh
# Made by `kubist envtest`.
echo "kubectl was not on PATH when kubist envtest made $0. Install kubectl, then run: kubist envtest {directory}" >&2
exit 127
"""
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def write_assets(directory: Path) -> None:
    """Writes the executables to a directory, and to `k8s/VERSION-OS-ARCH` in it, where setup-envtest and the
    libraries for Java look for them. Files that are right already are not touched."""
    for target in (directory, directory / "k8s" / release()):
        target.mkdir(parents=True, exist_ok=True)
        _write(target / "kube-apiserver", _executable("kube-apiserver", "kubist.cli.kube_apiserver"))
        _write(target / "etcd", _executable("etcd", "kubist.envtest.etcd"))
        _provide_kubectl(target / "kubectl", directory)


def release() -> str:
    """Version and platform in the form of setup-envtest, such as `1.36.4-linux-amd64`."""
    machine = platform.machine().lower()
    return f"{KUBERNETES_VERSION[1:]}-{sys.platform}-{_MACHINES.get(machine, machine)}"


def _executable(name: str, module: str) -> str:
    return _EXECUTABLE.format(
        python=shlex.quote(sys.executable), name=name, paths=_import_paths(), module=module
    )


def _import_paths() -> list[str]:
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
    """Links the kubectl of PATH. Without one, writes an executable that says so."""
    found = _installed_kubectl(directory)
    if found is None:
        _write(target, _NO_KUBECTL.format(directory=shlex.quote(str(directory))))
    elif not target.is_symlink() or os.readlink(target) != found:
        draft = Path(tempfile.mkdtemp(dir=target.parent)) / "kubectl"
        draft.symlink_to(found)
        draft.replace(target)
        draft.parent.rmdir()


def _installed_kubectl(directory: Path) -> str | None:
    """Path of the user's kubectl, not of one in the assets."""
    for folder in os.get_exec_path():
        found = shutil.which("kubectl", path=folder)
        if found is not None and directory.resolve() not in Path(os.path.abspath(found)).parents:
            return os.path.abspath(found)
    return None


def _write(path: Path, content: str) -> None:
    """Writes an executable whole or not at all, because a test may start it at the same time."""
    if not path.is_symlink() and path.is_file() and os.access(path, os.X_OK) and path.read_text() == content:
        return
    with files.draft(path) as draft:
        draft.write_text(content)
        draft.chmod(0o755)
