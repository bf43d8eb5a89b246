"""Runs of known shape, in memory."""

from __future__ import annotations

import pytest
from tests.dashboard.sample_api import SampleApi


@pytest.fixture(scope="session")
def ward() -> SampleApi:
    """Give sample runs that no test changes."""
    return SampleApi()


@pytest.fixture
def own_ward() -> SampleApi:
    """Give sample runs that the test may change."""
    return SampleApi()
