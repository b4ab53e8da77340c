"""The section "KWOK stages" of docs/workloads.md: its example works, and its lists are complete."""

from __future__ import annotations

import re
from pathlib import Path

from kubist.cluster.simulation.stages.go_template_evaluation import NAMES
from kubist.testing.host import Host
from tests.waiting import wait_for

PAGE = Path(__file__).parents[3] / "docs" / "workloads.md"


def section() -> str:
    return PAGE.read_text().partition("\n## KWOK stages\n")[2].partition("\n## ")[0]


def listed(before: str) -> set[str]:
    """Names in the paragraph after a line that ends with these words."""
    paragraph = section().partition(f"{before}\n\n")[2].partition("\n\n")[0]
    return set(re.findall("`([A-Za-z0-9_]+)`", paragraph))


def test_functions_of_templates_are_listed() -> None:
    assert listed("and all have:") == NAMES


def test_example_lets_a_pod_fail(kubist_host: Host, tmp_path: Path) -> None:
    example = section().partition("```yaml\n")[2].partition("```")[0]
    file = tmp_path / "flaky.yaml"
    file.write_text(example)
    cluster = kubist_host.cluster(workloads=True, stages=(str(file),))
    try:
        spec = {"restartPolicy": "Never", "containers": [{"name": "web", "image": "nginx"}]}
        metadata = {"name": "web", "labels": {"flaky": "true"}}
        cluster.load({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        cluster.wait("pod/web", "Ready")
        cluster.clock.advance("5s")
        wait_for(lambda: cluster.get("pod/web")["status"].get("reason") == "Flaky")
        status = cluster.get("pod/web")["status"]
        assert status["phase"] == "Failed"
        assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 1
        wait_for(lambda: "Flaky" in [event["reason"] for event in cluster.list("events")])
    finally:
        cluster.stop()
