"""A directive's state follows from what was issued and what the trainer said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals_service.directives import Ack, Issued, Standing, is_past, standing

ON = Issued(mode="on", newest=True)
OFF = Issued(mode="off", newest=True)
SEEN = Ack("0", 12, "acknowledged")

acks = st.lists(
    st.builds(
        Ack,
        source=st.sampled_from("012"),
        step=st.integers(0, 100),
        status=st.sampled_from(["acknowledged", "refused", "expired"]),
        reason=st.text(max_size=5),
    )
)


@pytest.mark.parametrize(
    ("issued", "said", "state"),
    [
        (ON, [], "pending"),
        (ON, [SEEN], "acknowledged"),
        (replace(ON, effective_step=13), [SEEN], "effective"),
        (replace(ON, effective_step=13), [], "effective"),
        (ON, [Ack("0", 12, "refused", "no std division")], "refused"),
        (ON, [SEEN, Ack("1", 12, "refused", "rank 1 filters groups")], "refused"),
        (ON, [SEEN, Ack("0", 40, "expired")], "expired"),
        (replace(ON, expires_at_step=40, last_step=40), [SEEN], "expired"),
        (replace(ON, expires_at_step=40, last_step=39, effective_step=13), [SEEN], "effective"),
        (replace(ON, newest=False), [], "superseded"),
        (replace(ON, newest=False, effective_step=13), [SEEN], "superseded"),
        (replace(ON, newest=False, expires_at_step=40, last_step=99), [SEEN], "superseded"),
        (replace(ON, newest=False), [Ack("0", 12, "refused", "no")], "refused"),
        (OFF, [], "pending"),
        (OFF, [SEEN], "withdrawn"),
        (replace(OFF, newest=False), [SEEN], "superseded"),
    ],
)
def test_state(issued: Issued, said: list[Ack], state: str) -> None:
    """Each way in which a directive can go has its one word."""
    assert standing(issued, said).state == state


def test_standing_keeps_the_steps() -> None:
    """The first acknowledgement and the first effective step are what a log shows."""
    said = [Ack("1", 14, "acknowledged"), SEEN]
    assert standing(replace(ON, effective_step=15), said) == Standing("effective", 12, 15, None)


def test_refusal_joins_the_reasons_of_the_ranks() -> None:
    """Two ranks with one reason say it once; a rank without a reason is not silence."""
    said = [Ack(source, 3, "refused", "no std division") for source in "01"]
    said.append(Ack("2", 3, "refused", "groups filtered"))
    assert standing(ON, said).refusal == "no std division; groups filtered"
    assert standing(ON, [Ack("0", 3, "refused")]).refusal == "the trainer gave no reason"


def test_expiry_needs_a_step_and_a_run_that_reached_it() -> None:
    """Without a limit or without a step nothing expires."""
    assert not is_past(None, 10)
    assert not is_past(10, None)
    assert not is_past(10, 9)
    assert is_past(10, 10)


@given(acks)
def test_a_refusal_is_never_hidden(said: list[Ack]) -> None:
    """Whatever else was said, one refusing rank shows, with a reason."""
    found = standing(ON, said)
    refused = any(ack.status == "refused" for ack in said)
    assert (found.state == "refused") == refused
    assert bool(found.refusal) == refused
