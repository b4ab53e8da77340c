"""Dockerfile, .dockerignore and compose.yaml. Their commands run here without a container engine."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.cli.processes import ROOT, running
from tests.cli.test_serve import READY, ask
from tests.packaging.installed import build
from tests.packaging.test_distributions import contents


class Instruction(NamedTuple):
    name: str
    value: str

    def arguments(self) -> list[str]:
        """Words of the exec form: a JSON list, after flags."""
        found: list[str] = json.loads(self.value[self.value.index("[") :])
        return found


def stages() -> list[list[Instruction]]:
    """Instructions of the Dockerfile by stage."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    found: list[list[Instruction]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, value = line.partition(" ")
        if name == "FROM":
            found.append([])
        found[-1].append(Instruction(name, " ".join(value.split())))
    return found


BUILD, FINAL = stages()


def only(name: str, stage: list[Instruction] = FINAL) -> Instruction:
    (found,) = [instruction for instruction in stage if instruction.name == name]
    return found


def variables() -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in shlex.split(only("ENV").value))


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["kubist"]
    return found


def test_stages_have_the_same_base() -> None:
    assert only("FROM", BUILD).value.removesuffix(" AS build") == only("FROM").value
    assert re.fullmatch(r"python:3\.\d+-slim", only("FROM").value)


def test_image_runs_without_root() -> None:
    uid, gid = only("USER").value.split(":")
    assert uid == gid and int(uid) > 1000
    (made,) = [i.value for i in FINAL if i.name == "RUN"]
    assert f"useradd --uid {uid} " in made
    order = [i.name for i in FINAL]
    assert order.index("USER") > order.index("RUN")
    data = only("VOLUME").value
    assert made.endswith(f"--mode=0700 {data}") and variables()["XDG_DATA_HOME"] == data
    assert only("EXPOSE").value == "6443"


def test_copied_files_are_sent_and_suffice_for_the_build(wheel: Path, tmp_path: Path) -> None:
    ignored, *kept = [
        line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")
    ]
    assert ignored == "*"
    copies = [i.value.split() for i in BUILD if i.name == "COPY"]
    for *sources, target in copies:
        for source in sources:
            assert f"!{source}" in kept
            if (ROOT / source).is_dir():
                shutil.copytree(
                    ROOT / source, tmp_path / target, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                shutil.copy(ROOT / source, tmp_path / target)
    assert {f"!{source}" for *sources, _ in copies for source in sources} == {
        line for line in kept if line.startswith("!")
    }
    build(tmp_path, tmp_path / "dist", "wheel")
    (again,) = (tmp_path / "dist").glob("*.whl")
    assert contents(again) == contents(wheel)


def test_extras_of_the_image_exist() -> None:
    extras = only("ARG", BUILD).value.removeprefix("EXTRAS=").split(",")
    project = (ROOT / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras)


def start_words(command: list[str]) -> list[str]:
    return [*only("ENTRYPOINT").arguments(), *command]


@pytest.mark.parametrize("source", ["Dockerfile", "compose.yaml"])
def test_command_serves_and_health_check_follows_it(
    installed: Path, home: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, *arguments = start_words(
        only("CMD").arguments() if source == "Dockerfile" else compose()["command"]
    )
    health = only("HEALTHCHECK").arguments()
    assert program == health[0] == "kubist" and "curl" not in (ROOT / "Dockerfile").read_text()
    for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.setenv(name, variables()[name])
    kubist = str(installed.parent / program)
    data = home / "volume"
    data.mkdir(mode=0o700)

    def check() -> int:
        words = [kubist, *health[1:]]
        environment = {**os.environ, "XDG_DATA_HOME": str(data)}
        return subprocess.run(words, env=environment, capture_output=True, check=False).returncode

    assert check() != 0
    settings = (
        "--secure-port=0",
        f"--data-dir={data / 'kubist'}",
    )  # any port; processes.py unsets XDG_DATA_HOME
    with running(home, *arguments, *settings, program=(), python=kubist) as server:
        server.wait_for(READY)
        assert check() == 0
        assert ask(data / "kubist/kubeconfig", "/readyz", text=True) == "ok"
        assert server.stop() == 0
    assert check() != 0


def test_compose_publishes_the_port_on_loopback_and_keeps_data() -> None:
    service = compose()
    port = only("EXPOSE").value
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert service["volumes"] == [f"data:{only('VOLUME').value}"]
    assert service["read_only"] and service["tmpfs"] == ["/tmp"] and service["cap_drop"] == ["ALL"]
    assert service["hostname"] == "kubist"
