"""Where incidents and directives are drawn, and which labels find room."""

from __future__ import annotations

from tests.dashboard.sample_runs import directive, incident

from rlvitals_dashboard import figures, marks
from rlvitals_dashboard.marks import Mark


def test_an_open_incident_lasts_until_now() -> None:
    """Its band ends at the newest step; a closed one ends at its own last step."""
    open_one = incident(1, onset_step=5, last_step=6)
    closed = incident(2, state="closed", onset_step=5, last_step=9)
    assert [(m.start, m.end) for m in marks.incident_marks([open_one, closed], 40)] == [
        (5, 40),
        (5, 9),
    ]


def test_an_incident_without_a_step_is_not_drawn() -> None:
    """Nothing can be drawn where no step is known."""
    assert marks.incident_marks([incident(1, onset_step=None)], 40) == []


def test_a_directive_lasts_until_the_next_or_its_expiry() -> None:
    """Version 1 ends where version 2 began, version 2 where it expires; pending is not drawn."""
    log = [
        directive(3),
        directive(2, effective_step=20, expires_at_step=30),
        directive(1, effective_step=10),
    ]
    assert [(m.start, m.end) for m in marks.directive_marks(log, 40)] == [(20, 30), (10, 20)]


def test_a_withdrawal_ends_a_remedy_without_a_ribbon_of_its_own() -> None:
    """`off` since step 20 ends what began at 10."""
    log = [
        directive(2, mode="off", focal=None, acknowledged_step=20),
        directive(1, effective_step=10),
    ]
    assert [(m.start, m.end) for m in marks.directive_marks(log, 40)] == [(10, 20)]


def test_the_gravest_label_keeps_its_words() -> None:
    """Side by side, the critical one is written out and the warning keeps its shape at most."""
    grave = Mark(50, 90, "▲ collapse", "#000000", "incident", rank=0)
    minor = Mark(49, 52, "◆ spike", "#000000", "incident", rank=1)
    texts = {mark.rank: text for mark, text, _ in marks.placed([minor, grave], 0, 100)}
    assert texts[0] == "▲ collapse"
    assert texts.get(1, "◆") == "◆"


def test_marks_outside_the_range_are_left_out() -> None:
    """A zoomed panel shows what touches it, labelled from its left edge on."""
    figure = figures.frame([{"x": [1]}], (100, 200), {}, "run")
    inside = Mark(50, 120, "▲ collapse", "#123456", "incident", rank=0)
    outside = Mark(10, 20, "◆ spike", "#123456", "incident", rank=1)
    layout = marks.draw(figure, [inside, outside])["layout"]
    assert [a["text"] for a in layout["annotations"]] == ["▲ collapse"]
    assert layout["annotations"][0]["x"] == 100
    assert len(layout["shapes"]) == 2


def test_words_that_a_short_ribbon_cannot_hold_stand_beside_it() -> None:
    """A long ribbon carries its label; a short one has it on its left."""
    long_one = Mark(50, 100, "focal γ 0.5", "#000000", "remedy")
    short_one = Mark(20, 22, "focal γ 0.5", "#000000", "remedy")
    sides = {m.start: side for m, _, side in marks.placed([long_one, short_one], 0, 100)}
    assert sides == {50: "left", 20: "right"}
