"""Colours, progress and the banner: on a terminal, and in pipes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kubist.base.terminal import paint
from kubist.cli import progress
from kubist.cli.columns import aligned, size
from tests import programs
from tests.cli.processes import environment, kubist
from tests.cli.terminals import Terminal, plain

KUBIST = [sys.executable, "-m", "kubist"]


def on_terminal(home: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    """Exit code and output of a command that ends by itself."""
    with Terminal([*KUBIST, *arguments], {**environment(home), **variables}, home) as terminal:
        return terminal.finish(), terminal.text


def piped(home: Path, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [*KUBIST, *arguments],
        env={**environment(home), **variables},
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout


@pytest.mark.parametrize(
    "arguments",
    [["help"], ["help", "serve"], ["help", "apiserver"], ["status"], ["nope"], ["serve", "--nope"]],
)
def test_colours_are_on_terminals_only(home: Path, arguments: list[str]) -> None:
    _, shown = on_terminal(home, *arguments)
    plain_text = piped(home, *arguments, TMPDIR=str(home))
    assert "\x1b" not in plain_text
    if arguments != ["status"]:
        assert "\x1b[" in shown
        assert plain(shown).replace("`", "").split() == plain_text.replace("`", "").split()


@pytest.mark.parametrize("columns", [70, 80, 120])
@pytest.mark.parametrize("command", ["serve", "apiserver", "status", "validate", "envtest"])
def test_help_fits_the_terminal(home: Path, command: str, columns: int) -> None:
    with Terminal([*KUBIST, "help", command], environment(home), home, columns) as terminal:
        assert terminal.finish() == 0
    shown = plain(terminal.text).replace("`", "")
    assert [line for line in shown.splitlines() if len(line) > columns] == []
    assert shown.split() == piped(home, "help", command).replace("`", "").split()
    assert not re.search(r"^ +-.*\n\n +[A-Z]", shown, re.MULTILINE)


@pytest.mark.parametrize(
    ("variables", "flags", "coloured"),
    [
        ({}, [], True),
        ({"NO_COLOR": "1"}, [], False),
        ({"NO_COLOR": ""}, [], True),
        ({"TERM": "dumb"}, [], False),
        ({}, ["--color", "never"], False),
        ({"NO_COLOR": "1"}, ["--color=always"], True),
        ({"TERM": "dumb"}, ["--color=always"], True),
        ({}, ["--color=auto"], True),
    ],
)
def test_users_choose_colours(
    home: Path, variables: dict[str, str], flags: list[str], coloured: bool
) -> None:
    given = {**environment(home), **variables}
    with Terminal(
        ["env", *(f"{k}={v}" for k, v in variables.items()), *KUBIST, *flags], given, home
    ) as shown:
        assert shown.finish() == 0
        assert ("\x1b[" in shown.text) == coloured


def test_suggestions_name_a_program_that_is_not_on_the_path(home: Path) -> None:
    script = Path(sys.executable).parent / "kubist"
    variables = {**environment(home), "PATH": "/usr/bin:/bin"}
    with Terminal([str(script), "serve", "--in-memory", "--secure-port=0"], variables, home) as terminal:
        terminal.wait_for(re.escape(f"{script} serve --in-memory --workloads"))
        terminal.wait_for(re.escape(f"{script} help exec"))


def test_pipes_have_colours_on_request(home: Path) -> None:
    assert "\x1b[31;1mkubist:\x1b[0m" in piped(home, "--color", "always", "nope")
    assert "\x1b[" in piped(home, "help", FORCE_COLOR="1")
    assert "\x1b[" not in piped(home, "help", FORCE_COLOR="1", NO_COLOR="1")


def test_banner_on_a_terminal_is_the_one_of_a_pipe_in_colours(home: Path) -> None:
    command = [*KUBIST, "serve", "--in-memory", "--secure-port=0"]
    with Terminal(command, environment(home), home) as terminal:
        terminal.wait_for("kubist help exec.*\n")
        shown = terminal.text
        terminal.interrupt()
        assert terminal.finish() == 0
        assert terminal.text.replace("^C", "") == shown, "a stop prints nothing"
    assert "\x1b[" in shown
    lines = plain(shown).replace("\r", "").splitlines()
    assert re.fullmatch(r"Kubist serves Kubernetes v1\.36 on https://127\.0\.0\.1:\d+", lines[0])
    assert re.fullmatch(r"  export KUBECONFIG=\S+/kubeconfig", lines[1])
    assert [line.split("  ")[1] for line in lines[3:6]] == ["Version", "Data", "Pods"]
    assert "in memory: nothing is kept" in lines[4]
    commands = [re.split("  +", line.strip())[0] for line in lines[lines.index("Next:") + 1 :]]
    assert commands == ["kubectl get namespaces", "kubist serve --in-memory --workloads", "kubist help exec"]


@programs.needs("bash")
def test_closed_pipe_is_no_error(home: Path) -> None:
    for command in ("apiserver --help", "help", "completion bash"):
        script = f"{sys.executable} -m kubist {command} | head -1; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["bash", "-c", script], env=environment(home), capture_output=True, text=True, check=False
        )
        assert (done.stderr, done.stdout.splitlines()[-1]) == ("", "0")


def test_closed_streams_are_no_error(home: Path) -> None:
    for words, code in (("help >&-", 0), ("nope 2>&-", 2), ("serve --nope >&- 2>&-", 2)):
        script = f"{sys.executable} -m kubist {words}"
        done = subprocess.run(
            ["sh", "-c", script], env=environment(home), capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_full_disk_is_one_line(home: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*KUBIST, "help"],
            env=environment(home),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "kubist: the output cannot be written: No space left on device\n"


SLOW = """
import sys, time
from kubist.cli import progress
times = iter(range(10_000))
progress.time = type("Clock", (), {"monotonic": staticmethod(lambda: next(times) / 4)})
with progress.step("Copying") as shown:
    for number in range(int(sys.argv[1])):
        shown.update(number, 400, "pages")
print("done")
"""


def test_progress_on_a_terminal_is_one_line_that_disappears(home: Path) -> None:
    command = [sys.executable, "-c", SLOW, "40"]
    with Terminal(command, environment(home), home) as terminal:
        assert terminal.finish() == 0
    text = terminal.text
    assert "\rCopying … 7 % (30 of 400 pages) 8 s" in plain(text)
    assert "\n" not in text.partition("done")[0]
    assert text.endswith("\r\x1b[Kdone\r\n")


def test_short_steps_print_nothing(home: Path) -> None:
    with Terminal([sys.executable, "-c", SLOW, "2"], environment(home), home) as terminal:
        assert terminal.finish() == 0
    assert terminal.text == "done\r\n"


def test_progress_in_a_pipe_is_a_few_lines(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SLOW, "400"], env=environment(home), capture_output=True, text=True, check=True
    )
    lines = done.stderr.splitlines()
    assert lines[0] == "Copying … 1 % (7 of 400 pages) 2 s"
    assert [int(line.split()[-2]) for line in lines] == [2, 4, 8, 16, 32, 64]
    assert "\x1b" not in done.stderr


def test_sampled_progress_ends_with_its_block(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_UPDATE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_FIRST_LINE_SECONDS", 0.0)
    asked: list[int] = []

    def measure() -> tuple[int, int, str]:
        asked.append(1)
        return len(asked), 0, "objects"

    with progress.sampled("Loading", measure) as end:
        while not asked:
            os.sched_yield()
        end()
        before = len(asked)
    assert len(asked) == before
    assert capsys.readouterr().err.startswith("Loading … 1 objects")


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (999_900, "1.0 MB"), (211_400_000, "211.4 MB")],
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


def test_columns_are_aligned() -> None:
    assert aligned([("a", "1"), ("long", "2")]) == ["  a     1", "  long  2"]
    assert paint("", "bold") == ""


def test_help_of_a_command_is_its_help_flag(home: Path) -> None:
    for name in ("serve", "stop", "backup", "version", "completion"):
        assert kubist("help", name, home=home).stdout == kubist(name, "--help", home=home).stdout
    assert kubist("--version", home=home).stdout == kubist("version", home=home).stdout
