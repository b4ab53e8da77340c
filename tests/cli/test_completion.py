"""`kubist completion`: candidates, and the scripts in real shells."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kubist.cli.commands import all_commands
from kubist.cli.completion import complete
from tests import programs
from tests.cli.processes import environment, kubist
from tests.cli.terminals import Terminal


def names(*words: str) -> list[str]:
    return [line.partition("\t")[0] for line in complete(list(words))]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sta"], ["status"]),
        ([""], list(all_commands())),
        (["--co"], ["--color"]),
        (["--color", "a"], ["auto", "always"]),
        (["--color=n"], ["--color=never"]),
        (["--color", "never", "sto"], ["stop"]),
        (["--color=never", "sto"], ["stop"]),
        (["help", "ba"], ["backup"]),
        (["help", "backup", ""], []),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["serve", "--worke"], ["--workers"]),
        (["serve", ""], []),
        (["serve", "--workers", ""], []),
        (["serve", "--in-memory=f"], ["--in-memory=false"]),
        (["serve", "--log-format", "j"], ["json"]),
        (["serve", "--log-format=j"], ["--log-format=json"]),
        (["serve", "--controllers", "*,-garb"], ["*,-garbagecollector"]),
        (["serve", "--controllers=garb"], ["--controllers=garbagecollector"]),
        (["serve", "--feature-gates", "WatchList="], ["WatchList=true", "WatchList=false"]),
        (["serve", "--enable-admission-plugins", "NodeR"], ["NodeRestriction"]),
        (["serve", "--data-dir", ""], [":directories"]),
        (["serve", "--unknown=", ""], []),
        (["serve", "--unknown="], []),
        (["apiserver", "--etcd-serv"], ["--etcd-servers", "--etcd-servers-overrides"]),
        (["apiserver", "--version", "--audit-log-pa"], ["--audit-log-path"]),
        (["status", "-o", ""], ["text", "json"]),
        (["logs", "--fo"], ["--follow"]),
        (["backup", "--file", ""], [":files"]),
        (["backup", "--fi"], ["--file"]),
        (["restore", "--for"], ["--force"]),
        (["envtest", "--w"], ["--warm"]),
        (["envtest", ""], [":files"]),
        (["exec", "--load", ""], [":files"]),
        (["exec", "--workloads", "--", "kube"], [":command"]),
        (["validate", "--output", "s"], ["sarif"]),
        (["validate", ""], [":files"]),
        (["clusters", "cr"], ["create"]),
        (["clusters", "create", ""], []),
        (["nope", ""], []),
        ([], list(all_commands())),
    ],
)
def test_candidates(words: list[str], expected: list[str]) -> None:
    assert names(*words) == expected


@pytest.mark.parametrize("command", [name for name in all_commands() if name not in ("help", "version")])
def test_flags_of_every_command_are_candidates(command: str, home: Path) -> None:
    """Every flag that the help shows is completed."""
    text = kubist(command, "--help", home=home).stdout
    shown = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", text, re.MULTILINE))
    assert shown - {"--help"} <= set(names(command, "--")), command


def variables(home: Path) -> dict[str, str]:
    found = environment(home)
    return {**found, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{found['PATH']}"}


BASH = """
source <(kubist completion bash)
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _kubist; printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("kubist sta", ["status"]),
        ("kubist status --output = j", ["json"]),
        ("kubist status --output =", ["text", "json"]),
        ("kubist status --output ''", ["text", "json"]),
        ("kubist backup --file ''", ["folder", "my file"]),
        ("kubist backup --file = my", ["my file"]),
        ("kubist status --data-dir ''", ["folder"]),
        ("kubist serve --controllers '*,-garb'", ["*,-garbagecollector"]),
    ],
)
@programs.needs("bash")
def test_bash_function_replies(words: str, expected: list[str], home: Path) -> None:
    (home / "folder").mkdir()
    (home / "my file").write_text("")
    command = ["bash", "--norc", "-c", BASH.format(words=words)]
    done = subprocess.run(command, env=variables(home), cwd=home, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert sorted(done.stdout.splitlines()) == sorted(expected)


def press_tab(terminal: Terminal, typed: str, shown: str) -> None:
    terminal.write(f"{typed}\t")
    terminal.wait_for(shown)
    terminal.write("\x15")  # deletes the line


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_tab_completes_in_a_terminal(shell: str, home: Path) -> None:
    programs.require(shell)
    start = {
        "bash": ["bash", "--norc", "--noprofile", "-i"],
        "zsh": ["zsh", "-f", "-i"],
    }[shell]
    (home / "folder").mkdir()
    with Terminal(start, {**variables(home), "PS1": "> "}, home) as terminal:
        terminal.wait_for("[>#%$] ")
        if shell == "zsh":
            terminal.write("autoload -Uz compinit && compinit -u -D\r")
        terminal.write(f'eval "$(kubist completion {shell})"; echo rea"d"y\r')
        terminal.wait_for("[\r\n]ready")
        press_tab(terminal, "kubist stat", "kubist status ")
        press_tab(terminal, "kubist status --outp", "kubist status --output ")
        press_tab(terminal, "kubist status --output=j", "kubist status --output=json ")
        press_tab(terminal, "kubist serve --controllers garb", "--controllers garbagecollector ")
        press_tab(terminal, "kubist status --data-dir fol", "--data-dir folder/")
        press_tab(terminal, "kubist status --data-dir=fol", "--data-dir=folder/")
        terminal.write("exit\r")
        assert terminal.finish() == 0


@programs.needs("fish")
def test_fish_completes(home: Path) -> None:
    (home / "folder").mkdir()
    for line, expected in (
        ("kubist sta", ["status"]),
        ("kubist status --output=j", ["--output=json"]),
        ("kubist status --output ", ["json", "text"]),
        ("kubist serve --controllers *,-garb", ["*,-garbagecollector"]),
        ("kubist status --data-dir fol", ["folder/"]),
        ("kubist status --data-dir=fol", ["--data-dir=folder/"]),
    ):
        script = f"kubist completion fish | source; complete -C '{line}'"
        command = ["fish", "--no-config", "-c", script]
        done = subprocess.run(
            command, env=variables(home), cwd=home, capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        assert [found.partition("\t")[0] for found in done.stdout.splitlines()] == expected


@pytest.mark.parametrize("arguments", [[], ["tcsh"], ["bash", "zsh"]])
def test_unknown_shell_is_one_line(arguments: list[str], home: Path) -> None:
    done = kubist("completion", *arguments, home=home)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the usage is kubist completion bash|zsh|fish" in done.stderr
