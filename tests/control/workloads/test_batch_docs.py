"""Examples of the section about Jobs, CronJobs and HorizontalPodAutoscalers of docs/workloads.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubist.testing import Cluster

PAGE = (Path(__file__).parents[3] / "docs/workloads.md").read_text()
SECTION = PAGE.partition("## Jobs, CronJobs, HorizontalPodAutoscalers\n")[2].partition("\n## ")[0]
EXAMPLES = re.findall(r"^```python\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)


def test_section_has_an_example_for_every_kind() -> None:
    assert len(EXAMPLES) == 3


@pytest.mark.kubist(workloads=True)
@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_of_the_guide_passes(example: str, cluster: Cluster) -> None:
    names: dict[str, Any] = {}
    exec(example, names)
    tests: list[Callable[[Cluster], None]] = [
        value for name, value in names.items() if name.startswith("test_")
    ]
    for test in tests:
        test(cluster)
