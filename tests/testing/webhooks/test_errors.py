"""Functions of webhooks that fail: the client gets an error, and the test its traceback."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster
from kubist.testing.cluster import Refused
from kubist.testing.errors import WebhookFailed
from tests.testing.test_plugin import run_pytest
from tests.testing.webhooks.objects import pod


def fail(obj: Object) -> None:
    raise ValueError("not\nlike this")


def test_client_sees_the_exception_and_its_line(cluster: Cluster) -> None:
    hook = cluster.validating_webhook("pods")(fail)
    with pytest.raises(Refused, match=r"ValueError: not like this \(test_errors.py:\d+\)") as refused:
        cluster.load(pod("web"))
    assert refused.value.code == 500 and 'failed calling webhook "fail.kubist.test"' in str(refused.value)
    assert [str(error) for error in hook.errors] == ["not\nlike this"]
    assert repr(hook).endswith("1 call, 1 error>")


def test_failure_policy_ignores_the_exception(cluster: Cluster) -> None:
    hook = cluster.mutating_webhook("pods", failure_policy="Ignore")(fail)
    cluster.load(pod("web"))
    assert len(hook.errors) == 1


def pytest_fail(obj: Object) -> None:
    pytest.fail("wrong pod")


@pytest.mark.parametrize(
    ("kind", "function", "message"),
    [
        ("validating_webhook", pytest_fail, "Failed: wrong pod"),
        ("validating_webhook", lambda obj: 5, "returned int 5; return True or None to allow"),
        ("validating_webhook", lambda obj: obj, "returned dict"),
        ("mutating_webhook", lambda obj: 5, "returned int 5; return None, the changed object"),
        ("mutating_webhook", lambda obj: {"when": datetime.UTC}, "not JSON"),
    ],
)
def test_wrong_results(cluster: Cluster, kind: str, function: Any, message: str) -> None:
    with getattr(cluster, kind)("pods", name="wrong")(function) as hook:
        with pytest.raises(Refused, match=message):
            cluster.load(pod("web"))
        assert len(hook.errors) == 1


def test_cluster_raises_errors_that_nobody_read() -> None:
    cluster = Cluster()
    cluster.start()
    cluster.validating_webhook("pods", failure_policy="Ignore")(fail)
    cluster.load(pod("web"))
    with pytest.raises(WebhookFailed, match=r"(?s)validating webhook fail failed:.*in fail.*ValueError"):
        cluster.stop()
    cluster.stop()


def test_exception_of_the_test_gets_a_note() -> None:
    def use_webhook() -> None:
        with Cluster() as cluster:
            cluster.validating_webhook("pods")(fail)
            cluster.load(pod("web"))

    with pytest.raises(Refused) as refused:
        use_webhook()
    assert "ValueError: not" in refused.value.__notes__[0]


TESTS = """
POD = '{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: b}]}}'


def test_ignored(cluster):
    @cluster.validating_webhook("pods", failure_policy="Ignore")
    def check_the_pod(pod):
        return pod["spec"]["missing"]

    cluster.load(POD)


def test_read(cluster):
    @cluster.validating_webhook("pods", failure_policy="Ignore")
    def check(pod):
        return pod["spec"]["other"]

    cluster.load(POD)
    assert isinstance(check.errors[0], KeyError)
"""


def test_plugin_reports_errors_that_nobody_read(tmp_path: Path) -> None:
    (tmp_path / "test_errors.py").write_text(TESTS)
    output = run_pytest(tmp_path)
    assert "2 passed, 1 error" in output
    assert "ERROR at teardown of test_ignored" in output
    assert "validating webhook check-the-pod failed:" in output
    assert 'return pod["spec"]["missing"]' in output and "KeyError: 'missing'" in output
    assert "/hook.py" not in output and "KeyError: 'other'" not in output
