"""The series of a run as columns."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rlvitals.records import NONFINITE

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Series:
    """Hold one metric: steps ascending and values of equal length.

    NaN, infinity and "no value" are kept apart: `value` has NaN for both NaN and no value,
    `missing` marks the latter. `attempt` is None unless all attempts were asked for.
    """

    step: NDArray[np.int64]
    value: NDArray[np.float64]
    missing: NDArray[np.bool_]
    attempt: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.step)


class History(Mapping[str, Any]):
    """Hold series of one run, as the service answered.

    It is that answer as a mapping; `series("acr")` and `to_pandas()` give it as numbers with NaN
    and infinities in their places.
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self._answer = answer

    def __getitem__(self, key: str) -> Any:
        return self._answer[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._answer)

    def __len__(self) -> int:
        return len(self._answer)

    @property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """Give the columns as the service sent them: null for a value that is not finite."""
        columns: dict[str, dict[str, Any]] = self._answer["metrics"]
        return columns

    @property
    def sampled(self) -> bool:
        """Say whether a metric had more steps than were asked for."""
        return bool(self._answer.get("sampled"))

    def series(self, metric: str) -> Series:
        """Give one metric as arrays; of a thinned one the extremes, made to show every spike."""
        return _series(self.metrics[metric])

    def means(self, metric: str) -> Series:
        """Give the mean of each bucket of a thinned metric, made for trends and averages.

        Each stands at its bucket's middle step; a metric with all its steps is given as it is.
        """
        column = self.metrics[metric]
        return _series(column.get("mean", column))

    def to_pandas(self) -> pd.DataFrame:
        """Give one column a metric, indexed by step (and attempt, when all were asked for)."""
        import pandas as pd

        columns = {}
        for name in self.metrics:
            series = self.series(name)
            keys = [series.step] if series.attempt is None else [series.step, series.attempt]
            columns[name] = pd.Series(series.value, index=_index(pd, keys), dtype="float64")
        frame = pd.DataFrame(columns).sort_index()
        return frame if columns else frame.rename_axis("step")

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one dictionary a step, with None where a metric has no value."""
        cells: dict[tuple[int, ...], dict[str, float | None]] = {}
        for name in self.metrics:
            series = self.series(name)
            attempts = [] if series.attempt is None else [series.attempt.tolist()]
            keys = zip(series.step.tolist(), *attempts, strict=True)
            for key, value, missing in zip(
                keys, series.value.tolist(), series.missing.tolist(), strict=True
            ):
                cells.setdefault(key, {})[name] = None if missing else value
        for key in sorted(cells):
            where = dict(zip(("step", "attempt"), key, strict=False))
            yield {**where, **{name: cells[key].get(name) for name in self.metrics}}

    def to_csv(self) -> str:
        """Write comma-separated values; NaN and Infinity by name, nothing for no value."""
        rows = list(self.rows())
        first = ["step", "attempt"] if rows and "attempt" in rows[0] else ["step"]
        text = io.StringIO()
        writer = csv.DictWriter(text, [*first, *self.metrics], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
        return text.getvalue()


def _series(column: Mapping[str, Any]) -> Series:
    step = np.asarray(column["step"], np.int64)
    raw = column["value"]
    value = np.array([math.nan if entry is None else entry for entry in raw], np.float64)
    missing = np.array([entry is None for entry in raw], np.bool_)
    attempt = column.get("attempt")
    places: dict[int, list[int]] = {}
    for place, number in enumerate(step.tolist()):
        places.setdefault(number, []).append(place)
    for at, name, *_ in column.get("nonfinite") or []:
        for place in places.get(at, []):
            if missing[place]:
                value[place], missing[place] = NONFINITE[name], False
                break
    return Series(step, value, missing, None if attempt is None else np.asarray(attempt, np.int64))


def _index(pd: Any, keys: list[Any]) -> Any:
    if len(keys) == 1:
        return pd.Index(keys[0], name="step")
    return pd.MultiIndex.from_arrays(keys, names=["step", "attempt"])


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, int):
        return value
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
