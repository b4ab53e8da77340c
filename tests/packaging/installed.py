"""Builds the distributions, installs them into new virtual environments, and serves from them."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.cli.processes import ROOT, running
from tests.cli.test_serve import READY, ask

MAPS = "/api/v1/namespaces/default/configmaps"


def run(*command: str | Path, directory: Path = ROOT) -> str:
    """Runs a command without the variables of this process's Python. Returns its output."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command,
        cwd=directory,
        env=kept,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def build(source: Path, target: Path, *kinds: str) -> None:
    """Builds distributions (sdist, wheel) of a source tree with the installed hatchling."""
    options = [part for kind in kinds for part in ("-t", kind)]
    run(sys.executable, "-m", "hatchling", "build", "-d", target, *options, directory=source)


def new_environment(where: Path) -> Path:
    """New virtual environment with pip. Returns its interpreter."""
    run(sys.executable, "-m", "venv", where, directory=where.parent)
    return where / "bin" / "python"


def lend_dependencies(python: Path) -> None:
    """Lets an environment import the packages of this one. Packages in its own folder come first, and editable
    installations of this one are not visible."""
    target = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    paths = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    (Path(target) / "dependencies.pth").write_text("\n".join(paths) + "\n")


def check_serving(python: Path, home: Path) -> None:
    """Serves with `kubist` of an environment: health over TLS, a write and a read."""
    program = str(python.parent / "kubist")
    found = run(python, "-c", "import kubist; print(kubist.__file__)", directory=home).strip()
    assert Path(found).is_relative_to(python.parents[1])
    data = home / "data"
    with running(
        home, "serve", f"--data-dir={data}", "--secure-port=0", program=(), python=program
    ) as server:
        server.wait_for(READY)
        kubeconfig = data / "kubeconfig"
        assert ask(kubeconfig, "/readyz", text=True) == "ok"
        ask(kubeconfig, MAPS, "POST", {"metadata": {"name": "written"}, "data": {"a": "b"}})
        assert ask(kubeconfig, f"{MAPS}/written")["data"] == {"a": "b"}
        assert "ready" in run(program, "status", f"--data-dir={data}", directory=home)
        assert server.stop() == 0
