"""The tile row: always the same tiles, each with a number, a word and a sparkline."""

from __future__ import annotations

import pytest
from tests.dashboard.sample_api import SampleApi

from rlvitals_dashboard import live, tiles
from rlvitals_dashboard.series import Series


def columns_of(ward: SampleApi, run_id: str) -> live.Columns:
    """Fetch a sample run's columns."""
    return live.snapshot(ward, ward.run(run_id), None, live.FIRST_SMALL).columns


def test_tiles_never_change_their_places(ward: SampleApi) -> None:
    """An empty run has as many tiles, under the same labels, as one with data."""
    empty = [tile.label for tile in tiles.tiles({}, 0)]
    full = [tile.label for tile in tiles.tiles(columns_of(ward, "collapsed"), 312)]
    assert len(empty) == len(full) == 12
    assert set(empty) ^ set(full) == {"pass@max", "pass@8"}


def test_a_last_value_that_is_not_finite_is_shown_as_such() -> None:
    """A gradient norm that has just become NaN must not read as the number before."""
    columns = {"grad_norm": Series([0, 1], [0.5, None], [(1, "NaN")])}
    (tile,) = [t for t in tiles.tiles(columns, 2) if t.key == "grad_norm"]
    assert tile.value == "NaN"


def test_a_nan_beyond_the_last_drawn_step_counts_too() -> None:
    """Where non-finite steps are listed beside the columns, the newest of them is the last."""
    columns = {"grad_norm": Series([0], [0.5], [(1, "-Infinity")])}
    (tile,) = [t for t in tiles.tiles(columns, 2) if t.key == "grad_norm"]
    assert tile.value == "−∞"


@pytest.mark.parametrize(
    ("slope", "key", "word"),
    [
        (1, "success_rate", "↗ rising, better"),
        (-1, "success_rate", "↘ falling, worse"),
        (1, "acr", "↗ rising, worse"),
        (1, "grad_norm", "↗ rising"),
        (0, "acr", "→ steady"),
    ],
)
def test_movement_is_judged_by_the_catalog(slope: int, key: str, word: str) -> None:
    """Rising success is better, rising collapse worse, and a gradient norm is neither."""
    ramp = Series(list(range(50)), [0.5 + slope * i / 100 for i in range(50)], [])
    assert tiles.movement(ramp, key) == word


def test_a_thinned_run_has_the_tiles_of_its_means() -> None:
    """Extremes of 0 and 1 with means of 0.25 are a quarter wasted of eight rollouts a step."""
    mean = Series([128, 384], [0.25, 0.25], [], count=[256, 256])
    columns = {
        "acr": Series([0, 9, 300, 511], [0.0, 1.0, 0.0, 1.0], [], mean),
        "rollouts": Series([0, 511], [8.0, 8.0], [], Series([128, 384], [8.0, 8.0], [])),
    }
    (tile,) = [t for t in tiles.tiles(columns, 512) if t.key == "wasted"]
    assert (tile.value, tile.word) == ("25%", "of 4.1 k seen")
    assert tile.spark == [0.25, 0.25]


def test_sparkline_is_short_and_ends_at_now() -> None:
    """A thousand values become 48, the last one being the newest trend."""
    series = Series(list(range(1000)), [float(i) for i in range(1000)], [])
    spark = tiles.sparkline(series)
    assert len(spark) == 48
    assert spark[-1] == max(v for v in spark if v is not None)
    assert tiles.spark_image(spark).startswith('url("data:image/svg+xml,')
    assert tiles.spark_image([None]) == "none"


def test_a_single_pass_at_k_is_one_tile() -> None:
    """A trainer that logs pass@8 alone has no pass@1, one that logs pass@1 alone no more tries."""
    for k, labels in ((8, ["pass@1", "pass@8"]), (1, ["pass@1", "pass@max"])):
        row = tiles.tiles({f"pass_at_{k}": Series([0], [0.5], [])}, 1)
        assert [tile.label for tile in row if tile.key.startswith("pass_at")] == labels
        assert sorted(tile.value for tile in row if tile.label in labels) == ["50%", "–"]
