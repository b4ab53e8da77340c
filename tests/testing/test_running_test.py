"""Clusters take part in the report of a failed test and in `kubist_unused_faults`, whatever made them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.testing.test_plugin import run_pytest

REPORTS = """
import asyncio

import pytest

from kubist.testing import Cluster

def config_map(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}

@pytest.fixture(scope="module")
def prepared(kubist_host):
    cluster = kubist_host.cluster()
    cluster.create(config_map("by-the-module"))
    yield cluster
    cluster.stop()

@pytest.fixture
def team(prepared):
    with prepared.fork() as cluster:
        yield cluster

@pytest.fixture
def broken():
    with Cluster() as cluster:
        cluster.create(config_map("in-broken-fixture"))
        raise ValueError("setup failed")

def event(name):
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "reason": name,
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}}

def test_before(team, prepared):
    team.create(config_map("before-in-fork"))
    prepared.create(config_map("before-in-module"))
    prepared.create(event("BeforeInModule"))

def test_fork(team):
    team.create(config_map("in-fork"))
    assert 1 == 2

def test_module_cluster(prepared):
    prepared.create(config_map("in-module"))
    assert 1 == 2

def test_stopped_cluster(kubist_host):
    with Cluster() as cluster:
        cluster.create(config_map("in-stopped"))
    assert 1 == 2

def test_many_stopped_clusters(kubist_host):
    for number in range(12):
        with kubist_host.cluster() as cluster:
            cluster.create(config_map(f"number-{number}"))
    assert 1 == 2

def test_asynchronous():
    async def run():
        async with Cluster() as cluster:
            await asyncio.to_thread(cluster.create, config_map("in-coroutine"))
    asyncio.run(run())
    assert 1 == 2

def test_hosted(kubist_host):
    with kubist_host.clusters.create("first") as first:
        first.create(config_map("in-first"))
    second = kubist_host.clusters.create("second")
    second.create(config_map("in-second"))
    kubist_host.clusters.delete("second")
    third = kubist_host.clusters.create("third")
    third.create(config_map("in-third"))
    with third.fork() as fourth:
        fourth.create(config_map("in-fourth"))
    assert 1 == 2

def test_two_clusters(cluster, kubist_host):
    cluster.create(config_map("in-cluster"))
    with kubist_host.cluster() as other:
        other.create(config_map("in-other"))
        print("urls", cluster.url, other.url)
    assert 1 == 2

def test_setup(broken):
    pass

def test_fault(cluster):
    cluster.faults.add(verb="list", user_agent="kubist-testing", status=503)
    cluster.list("pods")
"""

FAULTS = """
import pytest

from kubist.testing import Cluster

@pytest.fixture(scope="module")
def prepared(kubist_host):
    cluster = kubist_host.cluster()
    cluster.faults.add(resource="configmaps", name="left-by-module", delay="1ms")
    cluster.faults.add(verb="list", resource="pods", user_agent="kubist-testing", delay="1ms")
    yield cluster
    cluster.stop()

@pytest.fixture
def team(prepared):
    with prepared.fork() as cluster:
        yield cluster

def test_fork(team):
    team.faults.add(name="in-fork", status=500)

def test_stopped_cluster():
    with Cluster() as cluster:
        cluster.faults.add(name="in-stopped", status=500)

def test_hosted(kubist_host):
    with kubist_host.clusters.create() as cluster:
        cluster.faults.add(name="in-hosted", status=500)

def test_module_cluster(prepared):
    with prepared.faults.add(name="in-module", status=500):
        pass

def test_used(prepared, team):
    prepared.list("pods")
    with team.faults.add(verb="list", user_agent="kubist-testing", delay="1ms"):
        team.list("pods")

def test_last(prepared):
    pass
"""


def run(directory: Path, tests: str, setting: str = "") -> str:
    (directory / "test_it.py").write_text(tests)
    (directory / "pytest.ini").write_text(f"[pytest]\n{setting}\n")
    return run_pytest(directory)


def failures(output: str) -> dict[str, str]:
    """Report of each test."""
    output = re.split(r"^=+ (?:warnings|short test) summary", output, flags=re.MULTILINE)[0]
    parts = re.split(r"^_{3,} (?:ERROR at \w+ of )?(\w+) _{3,}$", output, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    output = run(tmp_path_factory.mktemp("reports"), REPORTS)
    assert "8 failed, 1 passed, 1 error" in output
    return failures(output)


def created(report: str) -> list[str]:
    return re.findall(r"create configmaps default/(\S+) -> 201", report)


@pytest.mark.parametrize(
    ("test", "names"),
    [
        ("test_fork", ["in-fork"]),
        ("test_module_cluster", ["in-module"]),
        ("test_stopped_cluster", ["in-stopped"]),
        ("test_many_stopped_clusters", [f"number-{number}" for number in range(2, 12)]),
        ("test_asynchronous", ["in-coroutine"]),
        ("test_hosted", ["in-first", "in-second", "in-third", "in-fourth"]),
        ("test_two_clusters", ["in-cluster", "in-other"]),
        ("test_setup", ["in-broken-fixture"]),
    ],
)
def test_report_has_the_requests_of_a_test(reports: dict[str, str], test: str, names: list[str]) -> None:
    assert created(reports[test]) == names


def test_report_has_the_objects_and_events_of_a_test(reports: dict[str, str]) -> None:
    report = reports["test_module_cluster"]
    assert "ConfigMap default/in-module: created" in report
    assert "before-in-module" not in report and "by-the-module" not in report
    assert "BeforeInModule" not in report
    assert "ConfigMap default/in-stopped: created" in reports["test_stopped_cluster"]


def test_sections_name_their_cluster_if_there_are_several(reports: dict[str, str]) -> None:
    report = reports["test_two_clusters"]
    [urls] = re.findall(r"^urls (\S+) (\S+)$", report, re.MULTILINE)
    assert [f"kubist: last requests of {url} " in report for url in urls] == [True, True]
    hosted = re.findall(r"kubist: last requests of (\S+) ", reports["test_hosted"])
    assert hosted[:3] == ["first", "second", "third"] and len(hosted) == 4
    assert "kubist: last requests ---" in reports["test_fork"]


def test_report_names_the_fault_rule_of_a_failure(reports: dict[str, str]) -> None:
    assert "-> 503 ServiceUnavailable, injected by fault rule 1  [admin" in reports["test_fault"]


def test_unused_rules_of_every_cluster_are_reported(tmp_path: Path) -> None:
    output = run(tmp_path, FAULTS, "kubist_unused_faults = error")
    assert "6 passed, 5 errors" in output
    named = {
        test: re.findall(r"never acted: .*?name='([\w-]+)'", text) for test, text in failures(output).items()
    }
    assert named == {
        "test_fork": ["in-fork"],
        "test_stopped_cluster": ["in-stopped"],
        "test_hosted": ["in-hosted"],
        "test_module_cluster": ["in-module"],
        "test_last": ["left-by-module"],
    }
