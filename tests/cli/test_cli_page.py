"""docs/cli.md: every command with its help and an example that runs, and the exit codes."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from kubist import errors
from kubist.cli import exits
from kubist.cli.commands import all_commands
from tests import programs
from tests.cli.processes import environment, kubist

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text()


def test_page_has_the_help_of_every_command() -> None:
    make = runpy.run_path(str(ROOT / "tools" / "make_cli.py"))
    assert make["page"](PAGE) == PAGE, "run tools/make_cli.py"
    sections = re.findall(r"^## `kubist (\w+)`$", PAGE, re.MULTILINE)
    shown = re.findall(r"^<!-- help: (\w+) -->$", PAGE, re.MULTILINE)
    assert sorted(sections) == sorted(all_commands())
    assert sorted(shown) == sorted(["kubist", *all_commands()])


def test_every_command_has_an_example() -> None:
    examples = "\n".join(re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
    assert all(f"kubist {name}" in examples for name in all_commands())


@programs.needs("bash", *programs.used_in(PAGE))
def test_examples_run(home: Path) -> None:
    """In order, in one directory."""
    variables = environment(home)
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}"
    examples = re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    try:
        for example in examples:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", example],
                env=variables,
                cwd=home,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, (example, done.stdout, done.stderr)
            assert "Traceback" not in done.stderr
            if "status" in example and "json" not in example:
                names = [
                    line.split()[0] for line in done.stdout.partition("Kubist is ready\n")[2].splitlines()
                ]
                shown = PAGE.partition("Kubist is ready\n")[2].partition("```")[0]
                assert names == [line.split()[0] for line in shown.splitlines()]
    finally:
        kubist("stop", "--data-dir=demo", home=home)
    assert (home / "copy" / "kubist.db").exists() and "server:" in (home / "demo.yaml").read_text()


def test_exit_codes_are_listed() -> None:
    table = PAGE.partition("## Exit codes")[2].partition("\n## ")[0]
    listed = {
        int(code) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in row.split(",")
    }
    used = {value for name, value in vars(exits).items() if name.isupper()}
    started = {
        getattr(errors, name).exit_code
        for name in errors.__all__
        if issubclass(getattr(errors, name), errors.StartError)
    }
    assert used | started | {126, 127} == listed


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["version"], 0),
        (["kubeconfig"], 1),
        (["nope"], 2),
        (["serve", "--nope"], 2),
        (["serve", "--in-memory", "--enable-admission-plugins=Nope"], 2),
        (["apiserver", "--secure-port=many"], 2),
        (["status"], 3),
        (["doctor", "--data-dir=damaged"], 4),
        (["serve", "--data-dir=damaged", "--secure-port=0"], 4),
        (["restore", "--file=damaged/kubist.db"], 4),
    ],
)
def test_exit_codes(home: Path, arguments: list[str], code: int) -> None:
    """Other tests have those for a taken port, a directory in use, `exec` and Ctrl-C."""
    (home / "damaged").mkdir()
    (home / "damaged" / "kubist.db").write_bytes(b"no database" * 1000)
    done = kubist(*arguments, home=home)
    assert done.returncode == code, done.stderr
    assert done.stderr.count("\n") == (1 if code in (1, 2, 4) else 0)


def test_user_without_home_gets_advice(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    for command in ("status", "stop", "logs", "kubeconfig", "doctor", "serve"):
        done = kubist(command, home=home)
        assert done.returncode == 2
        assert done.stderr == (
            "kubist: this user has no home directory: set HOME, or choose a directory with --data-dir\n"
        )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["serve", "--data-dir=file"], "--data-dir: file is not a directory"),
        (["kubeconfig", "--data-dir", "file"], "--data-dir: file is not a directory"),
        (
            ["serve", "--data-dir=damaged", "--secure-port=0"],
            "--data-dir: damaged/kubist.db cannot be opened",
        ),
        (["serve", "--in-memory", "--secure-port=0", "--encryption-provider-config=gone"], "check the path"),
        (
            ["apiserver", "--secure-port=0", "--cert-dir=c", "--client-ca-file", "gone"],
            "--client-ca-file: gone: ",
        ),
        (
            ["doctor", "--encryption-provider-config=gone"],
            "--encryption-provider-config: gone does not exist",
        ),
        (["exec", "kubectl", "get", "pods"], "put -- before the command: kubist exec -- kubectl get pods"),
        (["exec", "--load=gone", "--", "true"], "--load: gone does not exist"),
        (["help", "serve", "stop"], "unexpected argument 'stop': the usage is kubist help [COMMAND]"),
        (["version", "now"], "unexpected argument 'now'"),
        (["--color"], 'invalid argument "" for "--color" flag'),
        (["--in-memory", "serve"], "flags follow the command"),
        (["stats"], 'did you mean "status"?'),
    ],
)
def test_errors_name_the_flag_and_the_next_step(home: Path, arguments: list[str], line: str) -> None:
    (home / "file").write_text("")
    (home / "damaged" / "kubist.db").mkdir(parents=True)
    done = kubist(*arguments, home=home)
    assert done.returncode in (1, 2)
    errors_shown = [text for text in done.stderr.splitlines() if text.startswith("kubist: ")]
    assert len(errors_shown) == 1 and line in errors_shown[0], done.stderr
