"""Mistakes in tests that use a cluster: each is one line that says what to write, without frames of Kubist."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kubist
from kubist.testing import Cluster
from tests.testing.test_plugin import config_map, run_pytest

NAMED = {"metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.wait("pod/x", "deleted"), 'no condition is called "deleted"; did you mean "delete"?'),
        (lambda c: c.wait("pod/x", "gone"), 'no condition is called "gone"; did you mean "delete"?'),
        (lambda c: c.wait("pod/x", "exists"), 'no condition is called "exists"; did you mean "create"?'),
        (
            lambda c: c.wait("pod/x", "phase=Running"),
            '"phase=Running" is no condition, whose status is True, False or Unknown; '
            'did you mean "jsonpath={.status.phase}=Running"?',
        ),
        (
            lambda c: c.wait("pod/x", "jsonpath={.status.phase}="),
            '"jsonpath={.status.phase}=" is not of the form jsonpath={.status.phase}=Running',
        ),
        (lambda c: c.wait("pod/x", "jsonpath={.a[}"), '"jsonpath={.a[}" is no JSONPath: unterminated array'),
        (
            lambda c: c.wait("pod/x", lambda: True),
            "wait() calls the function with the object as its only argument: too many positional arguments",
        ),
        (
            lambda c: c.wait("pods -l app=web", "Ready"),
            '"pods -l app=web" may be several objects: say how many with count=3',
        ),
        (lambda c: c.wait("pod/x", count=2), 'count= is for several objects, such as "pods -l app=web"'),
        (lambda c: c.wait("pods", "delete", count=2), '"delete" of several objects needs count=0'),
        (
            lambda c: c.wait("pods --selektor app=web", count=2),
            '"pods --selektor app=web" has an unknown part "--selektor"; did you mean "--selector"?',
        ),
        (lambda c: c.wait("pods -l", count=2), '"pods -l" has no value after -l'),
        (lambda c: c.wait("pods -l a=(", count=2), 'the label selector "a=(" is malformed'),
        (
            lambda c: c.wait("pods --field-selector spec.image=x", count=2),
            "spec.image",
        ),
        (
            lambda c: c.wait("pod/x", {"phase": "Running"}),
            "wait() takes a condition's type, \"delete\" or a function, not {'phase': 'Running'}",
        ),
        (
            lambda c: c.wait("cm/a", lambda held: 1 / 0),
            "configmaps/a: the function failed with ZeroDivisionError: division by zero (test_mistakes.py:",
        ),
        (lambda c: c.get("pods"), "'pods' is not of the form kind/name, such as pod/web"),
        (
            lambda c: c.get("deploymnet/web"),
            'there is no resource "deploymnet"; did you mean "deployment"?',
        ),
        (lambda c: c.list("pod/web"), 'there is no resource "pod/web"; did you mean get("pod/web")?'),
        (
            lambda c: c.delete("cm/a", propagation_policy="Orphan"),
            'DeleteOptions has no field "propagation_policy"; did you mean "propagationPolicy"?',
        ),
        (
            lambda c: c.load({"kind": "Deployment", **NAMED}),
            'Deployment "a" has no apiVersion; did you mean "apps/v1"?',
        ),
        (lambda c: c.load({"kind": "Odd", **NAMED}), 'Odd "a" has no apiVersion'),
        (lambda c: c.load({"apiVersion": "v1", **NAMED}), 'a manifest has no kind: {"apiVersion":"v1",'),
        (
            lambda c: c.load({"apiVersion": "v1", "kind": "ConfigMap", "data": {}}),
            "ConfigMap has no metadata.name",
        ),
        (
            lambda c: c.load({"apiVersion": "v1", "kind": "Pods", **NAMED}),
            'v1 Pods is not served; did you mean "v1 Pod"?',
        ),
        (
            lambda c: c.load({"apiVersion": "v1", "kind": "Deployment", **NAMED}),
            'v1 Deployment is not served; did you mean "apps/v1 Deployment"?',
        ),
        (lambda c: c.load("a: [1\n"), "manifest, line 1: not a YAML document: yaml: "),
        (lambda c: c.load("- a\n- b\n"), "manifest, line 1: not a Kubernetes object: the document is a list"),
        (lambda c: c.load("# nothing\n"), 'the manifest has no object: "# nothing\\n"'),
        (lambda c: c.load(""), "the manifest is empty text"),
        (lambda c: c.load("kind: Pod"), 'there is no file or directory "kind: Pod" in /'),
        (
            lambda c: c.create({"kind": "List", "apiVersion": "v1", "items": []}),
            "the manifest has 0 objects instead of one; use load()",
        ),
        (lambda c: c.update({"kind": "Pod"}), "needs apiVersion, kind and metadata.name"),
        (
            lambda c: c.patch("cm/a", {}, type="json-patch"),
            'there is no patch type "json-patch"; it is one of json, merge, strategic',
        ),
    ],
)
def test_mistake_in_a_call_says_what_to_write(
    kubist_server: Cluster, call: Callable[[Cluster], Any], message: str
) -> None:
    kubist_server.load(config_map("a"))
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call(kubist_server)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_timeout_message_lists_existing_conditions(kubist_server: Cluster) -> None:
    kubist_server.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    conditions = [{"type": "Ready", "status": "False"}]
    patch = {"status": {"conditions": conditions}}
    kubist_server.request("PATCH", "/api/v1/nodes/n/status", patch, "application/merge-patch+json")
    with pytest.raises(TimeoutError, match=r"nodes/n: not Raedy after .* s; did you mean \"Ready\"\?"):
        kubist_server.wait("node/n", "Raedy", timeout=0.01)
    with pytest.raises(TimeoutError, match=r"nodes/n: not ready after .* s; .*'status': 'False'"):
        kubist_server.wait("node/n", "ready", timeout=0.01)


@pytest.mark.parametrize("make", [kubist.Config, kubist.Server, Cluster])
def test_unknown_setting_suggests_a_similar_one(make: Callable[..., Any]) -> None:
    with pytest.raises(TypeError) as caught:
        make(workload=True)
    assert str(caught.value) == 'kubist.Config has no setting "workload"; did you mean "workloads"?'


def test_unstarted_cluster_error_says_how_to_start_it() -> None:
    with pytest.raises(RuntimeError, match=r"the server is not running; start it with `with Cluster\(\) as"):
        Cluster().load(config_map("a"))


def test_calls_work_in_an_async_block() -> None:
    async def main() -> None:
        async with Cluster(controllers=()) as cluster:
            cluster.load(config_map("a", x="1"))
            assert cluster.get("cm/a")["data"] == {"x": "1"}
            assert cluster.wait("cm/a", lambda held: held["data"]["x"] == "1")
            assert (await cluster.wait_async("cm/a", lambda held: True))["kind"] == "ConfigMap"
            taken = cluster.snapshot()
            cluster.delete("cm/a")
            cluster.restore(taken)
            assert cluster.get("cm/a")

    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("call", ["load", "get", "wait", "snapshot"])
def test_blocking_call_in_the_loop_of_the_server_is_an_error(call: str) -> None:
    async def main() -> None:
        cluster = Cluster(controllers=())
        await cluster.start_here()
        try:
            arguments: dict[str, list[Any]] = {"load": [config_map("a")], "get": ["cm/a"], "wait": ["cm/a"]}
            with pytest.raises(RuntimeError, match=rf"await asyncio\.to_thread\(cluster\.{call}, …\)"):
                getattr(cluster, call)(*arguments.get(call, []))
            await asyncio.to_thread(cluster.load, config_map("a"))
            assert await asyncio.to_thread(cluster.wait, "cm/a", lambda held: True)
        finally:
            await cluster.stop_here()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_object_that_stays_is_not_deleted(cluster: Cluster) -> None:
    with pytest.raises(TimeoutError, match=r"^namespaces/default: not deleted after 0\.05 s"):
        cluster.wait("namespace/default", "delete", timeout=0.05)


def test_pytest_reports_omit_frames_of_kubist(tmp_path: Path) -> None:
    (tmp_path / "test_wrong.py").write_text(
        "import pytest\n"
        "def test_wait(cluster): cluster.wait('pod/x', 'deleted')\n"
        "def test_lambda(cluster): cluster.wait('ns/default', lambda held: 1 / 0)\n"
        "def test_late(cluster): cluster.wait('pod/x', timeout=0.01)\n"
        "def test_load(cluster): cluster.load({'kind': 'Pod'})\n"
        "def test_refused(cluster): cluster.get('pod/x')\n"
        "@pytest.mark.kubist(workload=True)\n"
        "def test_mark(cluster): pass\n"
        "@pytest.mark.kubist('workloads')\n"
        "def test_positional(cluster): pass\n"
    )
    output = run_pytest(tmp_path)
    assert "5 failed" in output and "2 errors" in output
    assert 'kubist.Config has no setting "workload"; did you mean "workloads"?' in output
    assert '@pytest.mark.kubist takes settings by name: kubist(workloads=...), not "workloads"' in output
    assert "kubist/" not in output.replace("kubist/settings", "")
    assert "concurrent/futures" not in output
    assert "another exception occurred" not in output
