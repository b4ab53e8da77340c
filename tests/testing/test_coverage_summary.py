"""The line about coverage that `make test` prints at its end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_summary_has_the_total_and_the_packages_with_the_least_coverage(tmp_path: Path) -> None:
    files = {
        "src/kubist/api/kinds/core/pod.py": {"executed_lines": [1, 2, 3], "missing_lines": [4]},
        "src/kubist/api/kinds/apps/deployment.py": {"executed_lines": [1], "missing_lines": []},
        "src/kubist/server/server.py": {"executed_lines": [1], "missing_lines": [2, 3, 4]},
        "src/kubist/api/kinds/__init__.py": {"executed_lines": [], "missing_lines": []},
    }
    (tmp_path / "coverage.json").write_text(json.dumps({"files": files}))
    tool = [sys.executable, str(ROOT / "tools/coverage_summary.py"), str(tmp_path / "coverage.json")]
    done = subprocess.run(tool, capture_output=True, text=True, check=True)
    assert done.stdout == "coverage: 55.6 % of 9 lines; least: server 25.0 %, api/kinds 80.0 %\n"
