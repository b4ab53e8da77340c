"""Time of a pytest run in which every test has its own cluster. Target: 200 tests in at most 5 s on an idle machine.

    python benchmarks/pytest_clusters.py --tests 200

Prints wall and CPU time (user and system) of the run, of a run with one test, and of pytest without a cluster. On a
busy machine compare the CPU time: the run is mostly sequential, so its wall time on an idle machine is close to it.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

WITH_CLUSTER = """
import pytest


@pytest.mark.parametrize("number", range({tests}))
def test_one(cluster, number):
    cluster.load({{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "same"}}}})
    assert cluster.get("configmap/same")
"""
WITHOUT = """
import pytest


@pytest.mark.parametrize("number", range({tests}))
def test_one(number):
    assert True
"""


class Cost(NamedTuple):
    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:6.2f} s wall, {self.cpu:6.2f} s CPU"


def run(source: str, tests: int) -> Cost:
    """Cost of one pytest process. Of the plugins only Kubist's is loaded."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "test_many.py").write_text(source.format(tests=tests))
        before, started = used(), time.perf_counter()
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "kubist.testing.plugin",
        ]
        done = subprocess.run(
            command,
            cwd=directory,
            env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        cost = Cost(time.perf_counter() - started, used() - before)
    if f"{tests} passed" not in done.stdout:
        sys.exit(done.stdout + done.stderr)
    return cost


def used() -> float:
    """CPU seconds of ended child processes."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tests", type=int, default=200, help="number of tests (200)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each kind; the cheapest counts (3)")
    given = parser.parse_args()
    kinds = {
        f"{given.tests} tests, a cluster each": (WITH_CLUSTER, given.tests),
        "1 test with a cluster": (WITH_CLUSTER, 1),
        f"{given.tests} tests without a cluster": (WITHOUT, given.tests),
    }
    costs = {}
    for title, (source, tests) in kinds.items():
        costs[title] = min((run(source, tests) for _ in range(given.runs)), key=lambda cost: cost.cpu)
        print(f"{title:32} {costs[title]}", flush=True)
    many, one, _ = costs.values()
    if given.tests > 1:
        print(f"{'each further test':32} {(many.cpu - one.cpu) / (given.tests - 1) * 1000:6.1f} ms CPU")


if __name__ == "__main__":
    main()
