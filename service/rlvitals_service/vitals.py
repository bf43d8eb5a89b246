"""Merge the parts of a step and derive its vitals, once, at write; pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlvitals.metrics.groups import Groups
from rlvitals.metrics.tally import Tally
from rlvitals.metrics.vitals import vitals
from rlvitals.records import Scalar, encode_scalar
from rlvitals_service.parts import COUNTERS, Part, StepKey

# What a trainer reports beside the groups and differs from them is kept under this prefix.
TRAINER = "trainer/"
SAME = 1e-6
# The same generation was counted at an earlier step.
CARRIED = "carried"
# Shares of groups that dynamic sampling has made meaningless once it removed the dead ones.
NEEDS_ALL_GROUPS = ("acr", "shaping_only", "success_rate", "pass_at_", "tail_miss_risk")
AFTER_FILTERING = ("acr_effective",)

GroupsOf = Callable[[Part], Groups]


@dataclass(slots=True)
class StepVitals:
    """Hold all that is derived from the parts of one step; values may be non-finite."""

    key: StepKey
    values: dict[str, float] = field(default_factory=dict)
    tally: Tally | None = None
    tally_trained: Tally | None = None
    applied: int | None = None
    client_time: float | None = None
    _encoded: dict[str, Scalar] | None = None

    def encoded(self) -> dict[str, Scalar]:
        """Give the values as strict JSON, a non-finite number as its name.

        Asked for the first time when the values are final.
        """
        if self._encoded is None:
            self._encoded = {
                name: value if math.isfinite(value) else encode_scalar(value)
                for name, value in self.values.items()
            }
        return self._encoded

    @property
    def attempt(self) -> int:
        """Give the attempt."""
        return self.key[0]

    @property
    def phase(self) -> str:
        """Give the phase, train or eval."""
        return self.key[1]

    @property
    def step(self) -> int:
        """Give the number of the step."""
        return self.key[2]


def derive(key: StepKey, parts: Sequence[Part], groups_of: GroupsOf) -> StepVitals:
    """Derive a step from all its parts, in whatever order they came.

    ``groups_of`` gives the groups of an identified part; it is asked only where a group may be
    spread over several parts.
    """
    ordered = sorted(parts, key=lambda part: part.key)
    step = StepVitals(key)
    sampled = tally_of([part for part in ordered if part.stage == "sampled"], groups_of)
    trained = tally_of([part for part in ordered if part.stage == "trained"], groups_of)
    step.tally, step.tally_trained = sampled, trained
    sent = merge_scalars(ordered)
    known = known_of(sampled, trained)
    step.values = {**_disagreements(sent, known), **sent, **known}
    if any(part.carried for part in ordered):
        step.values[CARRIED] = 1.0
    step.applied = max((part.applied for part in ordered if part.applied is not None), default=None)
    times = (part.client_time for part in ordered if part.client_time is not None)
    step.client_time = max(times, default=None)
    return step


def tally_of(parts: Sequence[Part], groups_of: GroupsOf) -> Tally | None:
    """Add up the parts of one stage; rows of one group id, also of different parts, are one group.

    None when no part that counts says anything about groups.
    """
    counted = [part for part in parts if part.counted]
    if not counted:
        return None
    identified = [part for part in counted if part.identified]
    spread = identified if len(identified) > 1 else []
    tallies = [part.tally for part in counted if part.tally and part not in spread]
    if spread:
        whole = Groups.concat([groups_of(part) for part in spread]).merged()
        tallies.append(Tally.from_groups(whole))
    total = tallies[0] if len(tallies) == 1 else sum(tallies, Tally())
    counters = {
        name: getattr(total, name) + sum(getattr(part, name) for part in counted)
        for name in COUNTERS
    }
    return replace(total, **counters)


def known_of(sampled: Tally | None, trained: Tally | None) -> dict[str, float]:
    """Give every vital that the tallies determine.

    Groups that were only seen after filtering say nothing about the share of dead groups, unless
    the number of filtered ones came with them.
    """
    known: dict[str, float] = {}
    if sampled is not None:
        known = _defined(vitals(sampled))
    elif trained is not None:
        known = _defined(vitals(trained))
        if not trained.filtered:
            known = {name: value for name, value in known.items() if not _needs_all(name)}
    if trained is not None:
        own = _defined(vitals(replace(trained, filtered=0)))
        if "acr" in own:
            known["acr_trained"] = own["acr"]
        if "acr_effective" in own:
            known["acr_effective"] = own["acr_effective"]
    return known


def merge_scalars(parts: Sequence[Part]) -> dict[str, float]:
    """Merge scalars by name: the newest generation of each source, then the mean over sources.

    A non-finite value of one source shows in the mean.
    """
    if len(parts) == 1:
        return dict(parts[0].scalars)
    newest: dict[str, dict[str, float]] = {}
    for part in parts:
        for name, value in part.scalars.items():
            newest.setdefault(name, {})[part.key[4]] = value
    return {name: _mean(by_source.values()) for name, by_source in newest.items()}


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    first = listed[0]
    if all(value == first for value in listed):
        return first
    return sum(value / len(listed) for value in listed)


def _defined(found: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in found.items() if value is not None}


def _needs_all(name: str) -> bool:
    return name.startswith(NEEDS_ALL_GROUPS) and name not in AFTER_FILTERING


def _disagreements(sent: Mapping[str, float], known: Mapping[str, float]) -> dict[str, float]:
    """Keep what a trainer reported under its own label where the groups say otherwise."""
    return {
        TRAINER + name: sent[name]
        for name in sent.keys() & known.keys()
        if not math.isclose(sent[name], known[name], rel_tol=SAME, abs_tol=SAME)
    }
