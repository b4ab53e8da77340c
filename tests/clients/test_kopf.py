"""Real operator: its handlers run, and the server honours its patches and finalizers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import Client
from tests.waiting import wait_for

pytest.importorskip("kopf")
OPERATOR = Path(__file__).with_name("operator_process.py")


@pytest.fixture
def operator(namespace: str, widgets: str, tmp_path: Path) -> Iterator[Path]:
    """Log file of the operator."""
    log = tmp_path / "operator.log"
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace", namespace, str(OPERATOR)]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        yield log
        process.kill()


def eventually(read: Callable[[], Any], wanted: Any, log: Path, seconds: float = 60) -> None:
    wait_for(lambda: read() == wanted, seconds, pause=0.05, explain=lambda: (read(), log.read_text()))


def test_handlers_fire_and_finalizers_hold(
    client: Client, namespace: str, widgets: str, operator: Path
) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    client.post(path, body)
    eventually(lambda: client.get(f"{path}/w").get("status", {}).get("seen"), 1, operator)
    assert client.get(f"{path}/w")["metadata"]["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]
    client.patch(f"{path}/w", {"spec": {"size": 2}})
    eventually(lambda: client.get(f"{path}/w")["status"].get("seen"), 2, operator)
    assert client.get(f"{path}/w")["status"]["before"] == 1
    client.delete(f"{path}/w")
    eventually(lambda: client.ask("GET", f"{path}/w").status, 404, operator)
    assert "saying goodbye to w" in operator.read_text()
