"""What a batch does to the database, over real HTTP."""

from __future__ import annotations

from typing import Any

from tests.serving import Api, Service


def groups(*rewards: list[float], **ids: list[str]) -> dict[str, Any]:
    """Reduce lists of 0/1 rewards to the columns of a record."""
    from rlvitals.metrics.groups import Groups

    found = Groups.from_rewards([list(row) for row in rewards], success_threshold=1.0)
    return {**{k: v for k, v in found.to_columns().items() if v is not None}, **ids}


def test_a_step_is_stored_and_derived(api: Api, service: Service) -> None:
    """One record with groups and scalars gives one step row with the vitals of its groups."""
    run_id = api.new_run()
    record = {
        "step": 3,
        "groups": groups([1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0]),
        "scalars": {"grad_norm": 0.5, "my/own": 2.0},
    }
    answer = api.send(run_id, record)
    assert answer == {
        "accepted": 1,
        "duplicates": 0,
        "rejected": [],
        "directive": None,
        "last_step": 3,
    }
    (row,) = service.rows("SELECT * FROM step WHERE run_id = %s", run_id)
    assert row["acr"] == 2 / 3
    assert row["success_rate"] == 0.5
    assert row["grad_norm"] == 0.5
    assert row["extra"] == {"my/own": 2.0}
