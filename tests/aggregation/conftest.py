from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregation.backends import Backend
from tests.live import Pki


@pytest.fixture
def backend(server_pki: Pki, tmp_path: Path) -> Iterator[Backend]:
    running = Backend(server_pki, tmp_path)
    yield running
    running.stop()
