"""Set-up by make: the interpreter that it finds, the stamps, and the flags that it passes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import programs
from tests.cli.processes import ROOT
from tests.packaging.installed import run

OLD = "#!/bin/sh\nexit 1\n"
"""Stand-in of an interpreter that is too old: every check of it fails."""
GOOD = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
WITHOUT_VENV = f"""\
#!/bin/sh
case "$2" in *ensurepip*) exit 1 ;; esac
exec {sys.executable} "$@"
"""
"""Stand-in of an interpreter of Debian without the package python3-venv."""


def find_python(tmp_path: Path, interpreters: dict[str, str], name: str) -> subprocess.CompletedProcess[str]:
    """Runs tools/find-python with only these interpreters, by their path below two folders of PATH."""
    for path, script in interpreters.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(script)
        (tmp_path / path).chmod(0o755)
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("ls", "sort"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    path = os.pathsep.join(str(tmp_path / folder) for folder in ("first", "second", "tools"))
    return subprocess.run(
        ["/bin/sh", ROOT / "tools/find-python", name],
        env={"PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("interpreters", "name", "found"),
    [
        ({"first/python3": GOOD}, "python3", "first/python3"),
        ({"first/python3": OLD, "second/python3": GOOD}, "python3", "second/python3"),
        ({"first/python3": OLD, "second/python3.12": GOOD}, "python3", "second/python3.12"),
        ({"first/python3": WITHOUT_VENV, "second/python3.11": GOOD}, "python3", "second/python3.11"),
        ({"first/python3": OLD, "second/python3.13": GOOD}, "python3.13", "second/python3.13"),
    ],
)
def test_interpreter_is_found(tmp_path: Path, interpreters: dict[str, str], name: str, found: str) -> None:
    done = find_python(tmp_path, interpreters, name)
    assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path / found))


@pytest.mark.parametrize(
    ("interpreters", "words"),
    [
        ({}, ["python3 was not found, or is older than Python 3.11", "make PYTHON="]),
        ({"first/python3": OLD}, ["older than Python 3.11", "Install Python 3.11 or later"]),
        (
            {"first/python3": WITHOUT_VENV},
            [
                "cannot create virtual environments: its module venv or ensurepip is missing",
                "sudo apt install python{}.{}-venv".format(*sys.version_info[:2]),
            ],
        ),
    ],
)
def test_missing_interpreter_names_the_next_step(
    tmp_path: Path, interpreters: dict[str, str], words: list[str]
) -> None:
    done = find_python(tmp_path, interpreters, "python3")
    assert done.returncode == 1 and done.stdout == ""
    assert all(word in done.stderr for word in words)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Folder with the files that the set-up reads, and a set-up that only names its arguments."""
    programs.require("make")
    (tmp_path / "tools").mkdir()
    for name in ("Makefile", "pyproject.toml", "tools/find-python"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tools/setup").write_text(
        '#!/bin/sh\necho "setup $3"\nmkdir -p $2/bin\ntouch $2/.serving\n'
        'if [ "$3" = dev ]; then touch $2/.installed; fi\n'
        "printf '#!/bin/sh\\necho kubist \"$@\"\\n' > $2/bin/kubist\nchmod +x $2/bin/kubist\n"
    )
    (tmp_path / "tools/setup").chmod(0o755)
    return tmp_path


def make(checkout: Path, *arguments: str) -> list[str]:
    return [line.rstrip() for line in run("make", "-s", *arguments, directory=checkout).splitlines()]


def make_older(*paths: Path) -> None:
    """Makes files older than everything that is written from now on."""
    for path in paths:
        os.utime(path, (1, 1))


def test_serve_installs_once_and_passes_flags(checkout: Path) -> None:
    served = "kubist serve --workloads --secure-port 7443"
    flags = "ARGS=--workloads --secure-port 7443"
    assert make(checkout, "serve", flags) == ["setup", served]
    assert make(checkout, "serve", flags) == [served]


def test_developer_set_up_is_separate_and_serves_as_well(checkout: Path) -> None:
    assert make(checkout, "serve") == ["setup", "kubist serve"]
    assert make(checkout, "dev") == ["setup dev"]
    assert make(checkout, "dev") == []
    assert make(checkout, "serve") == ["kubist serve"]


@pytest.mark.parametrize(("target", "stamps"), [("serve", [".serving"]), ("dev", [".serving", ".installed"])])
def test_changed_pyproject_installs_again(checkout: Path, target: str, stamps: list[str]) -> None:
    first = make(checkout, target)
    make_older(*(checkout / ".venv" / stamp for stamp in stamps))
    assert make(checkout, target) == first


@pytest.mark.parametrize(
    "target", ["test", "test-all", "check", "format", "bench", "soak", "soak-short", "ecosystem", "docs"]
)
def test_targets_of_contributors_begin_with_their_set_up(checkout: Path, target: str) -> None:
    assert "tools/setup python3 .venv dev" in make(checkout, "--dry-run", target)


def test_set_up_with_a_broken_interpreter_fails_with_its_message(checkout: Path) -> None:
    shutil.copy(ROOT / "tools/setup", checkout / "tools/setup")
    done = subprocess.run(
        ["tools/setup", str(checkout / "absent/python3"), ".venv"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "absent/python3 was not found" in done.stderr
    assert not (checkout / ".venv").exists()


def test_set_up_shows_steps_and_the_error_of_pip(checkout: Path) -> None:
    """pip cannot find the packages without an index. The next run continues with the environment."""
    shutil.copy(ROOT / "tools/setup", checkout / "tools/setup")
    for expected in (
        "[1/2] Creating the virtual environment .venv",
        "[1/2] The virtual environment .venv exists",
    ):
        done = subprocess.run(
            ["tools/setup", sys.executable, ".venv"],
            cwd=checkout,
            env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(checkout)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert expected in done.stdout
        assert "[2/2] Installing Kubist and the packages that it needs to serve" in done.stdout
        assert "pip could not install the packages" in done.stderr
        assert not (checkout / ".venv/.serving").exists()
