"""Settings as a directive states them."""

from __future__ import annotations

import pytest

from rlvitals.remedies import Avspo, Focal, Remedies


def test_settings_travel_and_return() -> None:
    """What to_dict wrote from_dict reads; left-out settings take their defaults."""
    remedies = Remedies(Focal(0.5), Avspo(cap=4))
    assert Remedies.from_dict(remedies.to_dict()) == remedies
    assert Remedies.from_dict({}) == Remedies()
    assert Remedies.from_dict({"focal": None, "avspo": {}}) == Remedies(avspo=Avspo())


@pytest.mark.parametrize(
    ("plain", "field"),
    [
        ({"focal": {}}, "focal.gamma"),
        ({"focal": {"gamma": -1}}, "focal.gamma"),
        ({"focal": {"gamma": "1"}}, "focal.gamma"),
        ({"focal": {"gamma": True}}, "focal.gamma"),
        ({"focal": {"gamma": None}}, "focal.gamma"),
        ({"focal": {"gamma": float("nan")}}, "focal.gamma"),
        ({"focal": {"gamma": 1, "beta": 2}}, "focal.beta"),
        ({"focal": 0.5}, "focal"),
        ({"avspo": []}, "avspo"),
        ({"avspo": {"alpha": float("inf")}}, "avspo.alpha"),
        ({"avspo": {"threshold": 1.5}}, "avspo.threshold"),
        ({"avspo": {"adaptive": 1}}, "avspo.adaptive"),
        ({"avspo": {"target": -0.1}}, "avspo.target"),
        ({"avspo": {"rate": 2}}, "avspo.rate"),
        ({"avspo": {"gain_all_fail": -1}}, "avspo.gain_all_fail"),
        ({"avspo": {"gain_all_pass": 11}}, "avspo.gain_all_pass"),
        ({"avspo": {"cap": 0}}, "avspo.cap"),
        ({"avspo": {"cap": 1.5}}, "avspo.cap"),
        ({"sharpness": {}}, "sharpness"),
    ],
)
def test_bad_settings_are_named(plain: dict[str, object], field: str) -> None:
    """Every wrong setting raises a ValueError that starts with its full name."""
    with pytest.raises(ValueError, match=rf"^{field}: "):
        Remedies.from_dict(plain)


def test_solved_groups_are_left_alone_beside_focal_weights() -> None:
    """The gain on all-pass groups is 0 with focal weighting, 1 without, or as set."""
    assert Remedies(Focal(1.0), Avspo()).gain_all_pass == 0.0
    assert Remedies(None, Avspo()).gain_all_pass == 1.0
    assert Remedies(Focal(1.0), Avspo(gain_all_pass=0.3)).gain_all_pass == 0.3
    assert Remedies().gain_all_pass == 0.0
