"""The grace period of `kopf_operator`: functions of an operator that still run when it stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubist.testing import Cluster, KopfOperators
from kubist.testing.operators import operator as running
from kubist.testing.operators.operator import ProcessOperator
from tests.clients.conftest import CRD
from tests.testing.operators.test_kopf_operator import widget
from tests.waiting import wait_for

kopf = pytest.importorskip("kopf")
pytest.importorskip("kubernetes")

SOURCE = """
import asyncio
import time

import kopf


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = False


@kopf.on.cleanup()
def clean_up(logger, **_):
    logger.info("cleaned up")


@DECORATOR
DEF work(logger, **_):
    logger.info("begun")
    try:
        SLEEP
        logger.info("work is done")
    except asyncio.CancelledError:
        logger.info("cancelled")
        raise
"""
TIMER = "kopf.timer('widgets.example.com', interval=100)"
DAEMON = "kopf.daemon('widgets.example.com')"
HANDLER = "kopf.on.create('widgets.example.com')"


@pytest.fixture(autouse=True)
def crd(cluster: Cluster) -> None:
    cluster.load(CRD)


def source(directory: Path, decorator: str, sleep: str) -> Path:
    """An operator whose function takes a time."""
    path = directory / "slow.py"
    start = "def" if sleep.startswith("time") else "async def"
    path.write_text(SOURCE.replace("DECORATOR", decorator).replace("DEF", start).replace("SLEEP", sleep))
    return path


# kopf warns about functions that it leaves alone. In a thread, the warnings are those of the test.
@pytest.mark.filterwarnings("ignore:.* did not exit in time:ResourceWarning")
@pytest.mark.parametrize("mode", ["process", "thread"])
@pytest.mark.parametrize(
    ("decorator", "seconds"),
    [(TIMER, 4), (DAEMON, 4), (HANDLER, 1.8)],  # kopf waits for 5 seconds, for handlers 2
    ids=["timer", "daemon", "handler"],
)
def test_functions_are_cancelled_after_the_grace_period(
    cluster: Cluster, kopf_operator: KopfOperators, tmp_path: Path, decorator: str, seconds: float, mode: Any
) -> None:
    path = source(tmp_path, decorator, f"await asyncio.sleep({seconds})")
    operator = kopf_operator(path, mode=mode, grace=0.1)
    cluster.load(widget("a", 1))
    wait_for(lambda: "begun" in operator.output)
    operator.stop()
    assert "cancelled" in operator.output and "work is done" not in operator.output
    assert "cleaned up" in operator.output
    if isinstance(operator, ProcessOperator):
        assert operator.exit_code == 0


@pytest.mark.filterwarnings("ignore:.* did not exit in time:ResourceWarning")
@pytest.mark.parametrize("grace", [None, 5])
def test_functions_may_finish_in_the_grace_period(
    cluster: Cluster, kopf_operator: KopfOperators, tmp_path: Path, grace: float | None
) -> None:
    operator = kopf_operator(source(tmp_path, TIMER, "await asyncio.sleep(0.5)"), mode="thread", grace=grace)
    cluster.load(widget("a", 1))
    wait_for(lambda: "begun" in operator.output)
    operator.stop()
    assert "work is done" in operator.output and "cancelled" not in operator.output


def test_process_with_a_synchronous_function_that_hangs_is_killed(
    cluster: Cluster, kopf_operator: KopfOperators, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "STOP_SECONDS", 600)
    operator = kopf_operator(source(tmp_path, TIMER, "time.sleep(60)"), grace=0.1)
    cluster.load(widget("a", 1))
    wait_for(lambda: "begun" in operator.output)
    operator.stop()
    assert isinstance(operator, ProcessOperator) and operator.exit_code == -9
    assert "cleaned up" in operator.output and "work is done" not in operator.output


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_operator_that_fails_is_reported_with_a_grace_period(
    kopf_operator: KopfOperators, tmp_path: Path, mode: Any
) -> None:
    path = tmp_path / "broken.py"
    path.write_text(
        "import kopf\n\n\n@kopf.on.startup()\ndef start(**_):\n    raise kopf.PermanentError('no')\n"
    )
    with pytest.raises(
        running.OperatorFailed, match=r"(?s)broken.py did not start.*(PermanentError|ActivityError)"
    ):
        kopf_operator(path, mode=mode, grace=0.1)


def test_grace_period_is_not_negative(kopf_operator: KopfOperators) -> None:
    with pytest.raises(ValueError, match="grace must be a number of seconds, not -1"):
        kopf_operator("x.py", grace=-1)
