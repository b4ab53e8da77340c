"""YAML tables of test cases, which serve as specification."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml


def table(name: str) -> list[Any]:
    cases = yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text())
    return [pytest.param(case, id=case["case"]) for case in cases]
