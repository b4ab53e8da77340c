"""The examples of docs/clusters.md run as they are written."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from kubist.testing import Cluster
from tests import programs
from tests.testing.test_docs import blocks, run

PAGE = "clusters.md"


def test_examples_with_tests_pass(tmp_path: Path) -> None:
    examples = blocks(PAGE, "python")
    for number, example in enumerate(examples):
        (tmp_path / f"test_{number}.py").write_text(example)
    found = sum(len(re.findall(r"^def test_", example, re.MULTILINE)) for example in examples)
    assert found >= 2
    assert f"{found} passed" in run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".")


@pytest.mark.parametrize("script", blocks(PAGE, "bash"))
def test_examples_with_curl_run(script: str, host: Cluster, tmp_path: Path) -> None:
    programs.require("bash", *programs.used_in(script))
    variables = os.environ | {
        "KUBIST_URL": host.url,
        "KUBIST_TOKEN": host.token,
        "KUBIST_CA": str(host.ca),
        "no_proxy": "127.0.0.1",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"name": "default"' in done.stdout
    assert "from-curl" in done.stdout
    assert "from-curl" not in host.clusters
