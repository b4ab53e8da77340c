"""Server that all tests of growth share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.growth.measuring import Prober
from tests.live import Live, Pki


@pytest.fixture(scope="session")
def growing_live(server_pki: Pki) -> Iterator[Live]:
    with Live(server_pki) as running:
        yield running


@pytest.fixture
def prober(growing_live: Live) -> Prober:
    return Prober(growing_live)
