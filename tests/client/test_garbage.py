"""Nothing a trainer can hand over raises, whatever it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rlvitals
from rlvitals.frames import RECORD
from rlvitals.records import StepRecord
from rlvitals.spool import Spool

numbers = st.one_of(st.floats(), st.integers(), st.booleans(), st.none())
leaves = st.one_of(numbers, st.text(max_size=5), st.binary(max_size=3), st.complex_numbers())
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(leaves, inner, max_size=3),
    max_leaves=12,
)


class Hostile:
    """Raise at every touch that a client might try."""

    def __repr__(self) -> str:
        return "Hostile()"  # for Hypothesis to print

    def __getattr__(self, name: str) -> Any:
        raise (AttributeError if name.startswith("_") else RuntimeError)(name)

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("iter")

    def __float__(self) -> float:
        raise RuntimeError("float")

    def __str__(self) -> str:
        raise RuntimeError("str")


odd = st.one_of(
    anything,
    st.sampled_from(
        [
            Hostile(),
            [Hostile()],
            np.array(["a", "b"]),
            np.array([1 + 2j]),
            np.array([None, object()], dtype=object),
            np.zeros((2, 2, 2)),
            np.zeros((0, 4)),
            torch.zeros(2, 2, dtype=torch.complex64),
            torch.tensor([]),
            torch.zeros(3, dtype=torch.bool),
        ]
    ),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rlvitals.Run]:
    """Record offline, so that only the hook itself is tried."""
    run = rlvitals.init(mode="offline", dir=tmp_path_factory.mktemp("garbage"))
    yield run
    run.finish()
    assert "internal" not in run.losses


freely = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@freely
@given(metrics=odd, step=odd, phase=odd)
def test_log_never_raises(run: rlvitals.Run, metrics: Any, step: Any, phase: Any) -> None:
    """Any metrics, step and phase pass through log."""
    run.log(metrics, step)
    run.log(metrics, step, phase=phase)
    run.log({"loss": metrics, "kl": step}, 0)


@freely
@given(rewards=odd, ids=odd, correct=odd, count=odd)
def test_log_groups_never_raises(
    run: rlvitals.Run, rewards: Any, ids: Any, correct: Any, count: Any
) -> None:
    """Any rewards, ids and counts pass through log_groups."""
    run.log_groups(rewards)
    run.log_groups(rewards, 1, group_ids=ids, correct=correct, prompt_ids=ids)
    run.log_groups(rewards, count, generation=count, filtered=count, dropped=count, stage=count)


@freely
@given(advantages=odd, rewards=odd, step=odd)
def test_reweight_and_alert_never_raise(
    run: rlvitals.Run, advantages: Any, rewards: Any, step: Any
) -> None:
    """Any advantages come back as the same object, any alert is taken or counted."""
    assert run.reweight(advantages, rewards, step=step, group_ids=step) is advantages
    run.alert(rewards, advantages, step, step)


def test_garbage_leaves_readable_records_and_counted_losses(tmp_path: Any) -> None:
    """Among garbage the good values survive, and each loss has a reason."""
    run = rlvitals.init(mode="offline", dir=tmp_path)
    run.log({"loss": 1.0, "bad": Hostile()}, step=0)
    run.log_groups([[1.0, "x"]], step=0)
    run.log_groups([[1.0, 0.0]], step=0)
    run.finish()
    import msgspec

    spool = Spool.open(next((tmp_path / "spool").glob("*.spool")))
    records = [
        msgspec.msgpack.decode(frame.body, type=StepRecord)
        for frame in spool.read(0)
        if frame.kind == RECORD
    ]
    spool.close()
    assert any(record.scalars == {"loss": 1.0} for record in records)
    assert any(record.groups is not None for record in records)
    assert sum(run.losses.values()) == 2
