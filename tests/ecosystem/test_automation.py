"""Automation tools that read logs and run commands: Prefect and Ansible, each in an environment of its own."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.ecosystem.installation import build, copy_sources, run
from tests.ecosystem.servers import Server, unique
from tests.ecosystem.table import exercises

HERE = Path(__file__).parent


def version(name: str, package: str) -> str:
    """Version of a package in the requirements of an environment."""
    lines = (HERE / name / "requirements.txt").read_text().split()
    return dict(line.split("==") for line in lines)[package]


def environment(name: str) -> Path:
    """Directory of the programs of an environment, which is made on first use."""
    sources = copy_sources(name)
    programs = sources / "environment/bin"
    if not programs.exists():
        build([sys.executable, "-m", "venv", "environment"], sources)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"]
    build([programs / "python", *install], sources)
    return programs


@exercises(
    "prefect-kubernetes", version("prefect", "prefect-kubernetes"), "KubernetesJob: logs, result, failure"
)
def test_prefect(server: Server, tmp_path: Path) -> None:
    programs = environment("prefect")
    program = programs.parents[1] / "use_prefect.py"
    variables = {**server.environment, "PREFECT_HOME": str(tmp_path), "PREFECT_LOGGING_LEVEL": "WARNING"}
    output = run([programs / "python", program, unique("prefect")], tmp_path, 240, variables)
    assert output.endswith("passed\n")


@exercises("Ansible kubernetes.core", version("ansible", "ansible"), "k8s, k8s_log, k8s_exec, k8s_cp")
def test_ansible(server: Server, tmp_path: Path) -> None:
    programs = environment("ansible")
    playbook = programs.parents[1] / "playbook.yml"
    settings = {
        "ansible_python_interpreter": programs / "python",
        "place": unique("ansible"),
        "directory": tmp_path,
    }
    extra = [part for name, value in settings.items() for part in ("--extra-vars", f"{name}={value}")]
    variables = {**server.environment, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(tmp_path)}
    run([programs / "ansible-playbook", "-i", "localhost,", *extra, playbook], tmp_path, 240, variables)
