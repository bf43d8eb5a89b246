"""Stand in for the service in memory, with the same methods and the same answers.

It serves the tests of figures and layouts, which need runs of known shape, and looking at the
pages by eye. Whatever crosses HTTP is tested against the real service.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from tests.dashboard.sample_runs import SIZE, FloatArray, SampleRun, directive, incident

from rlvitals.api import ApiError, Page
from rlvitals_service.buckets import select

REST_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _collapsed() -> SampleRun:
    return SampleRun(
        id="collapsed",
        name="qwen-1.5b-gsm8k-lr3e6",
        steps=312,
        seed=4,
        collapse_at=150,
        spike_at=90,
        nonfinite={120: math.nan, 121: math.inf},
        custom=("custom/tool_calls", "custom/format_reward"),
        eval_every=50,
        tags=("ablation", "lr3e-6"),
        verdict="97 % of groups teach nothing: half are always solved, half never are.",
        incidents=[
            incident(
                3,
                onset_step=188,
                last_step=311,
                text="ACR passed 0.75 at step 188 and has stayed there for 123 steps.",
                causes=[
                    {"name": "all_pass", "share": 0.53, "text": "53 % solved by every rollout"},
                    {"name": "all_fail", "share": 0.47, "text": "47 % solved by none"},
                ],
                evidence={"acr": 0.97, "low": 0.95, "high": 0.98, "groups": 1280},
                advice="Turn on focal weighting (gamma 0.5) and AVSPO, or filter the prompts.",
                reference="Advantage collapse in GRPO",
                changes=[
                    {
                        "action": "opened",
                        "severity": "warning",
                        "step": 176,
                        "at": "2026-08-20T10:00:00Z",
                        "text": "ACR above 0.5",
                    },
                    {
                        "action": "escalated",
                        "severity": "critical",
                        "step": 188,
                        "at": "2026-08-20T10:02:00Z",
                        "text": "ACR above 0.75",
                    },
                ],
            ),
            incident(
                2,
                kind="gradient_nonfinite",
                severity="critical",
                state="closed",
                onset_step=120,
                last_step=121,
                closed_step=131,
                title="The gradient was not finite",
                text="NaN at step 120, Infinity at step 121.",
                evidence={"steps": 2},
                acknowledged_by="mara",
                acknowledged_at="2026-08-20T09:58:00Z",
                advice="Lower max_grad_norm, or skip such steps.",
            ),
            incident(
                1,
                kind="gradient_spike",
                severity="warning",
                state="closed",
                onset_step=90,
                last_step=90,
                closed_step=100,
                title="Gradient norm 60 times its usual size",
                text="32.1 at step 90; usual 0.53.",
                evidence={"grad_norm": 32.1, "median": 0.53},
                advice="One spike is often harmless.",
            ),
        ],
        directives=[
            directive(
                3,
                focal={"gamma": 0.5},
                avspo={"alpha": 0.5},
                expires_at_step=600,
                reason="collapse since step 188",
                state="effective",
                acknowledged_step=211,
                effective_step=212,
                acks=[
                    {
                        "source": "0",
                        "step": 211,
                        "status": "acknowledged",
                        "reason": "",
                        "at": "2026-08-20T10:06:00Z",
                    }
                ],
            ),
            directive(2, state="refused", refusal="no std division in this trainer"),
        ],
    )


def sample_runs() -> list[SampleRun]:
    """Give a ward of runs: healthy, collapsed, dense, long, empty, crashed, stale, many more."""
    named = [
        SampleRun("healthy", "qwen-1.5b-gsm8k", steps=240, seed=1, tags=("baseline",)),
        _collapsed(),
        SampleRun(
            "dense",
            "llama-3b-code-dense",
            project="code",
            steps=500,
            seed=2,
            dense=True,
            directives=[directive(1)],
        ),
        SampleRun(
            "long",
            "deepmath-32b",
            state="finished",
            steps=100_000,
            seed=3,
            spike_at=61_010,
            nonfinite={40_000: math.nan},
            abilities=(),
            seen_seconds_ago=7200,
            verdict="Finished; success rose from 42 % to 62 %.",
        ),
        SampleRun("empty", "just-started", verdict="No steps yet.", seen_seconds_ago=1),
        SampleRun(
            "crashed",
            "qwen-7b-tools",
            project="agents",
            state="crashed",
            steps=77,
            seed=6,
            seen_seconds_ago=90_000,
            directives=[
                directive(1, state="refused", refusal="dynamic sampling already filters groups")
            ],
        ),
        SampleRun(
            "stale",
            "verl-14b",
            project="agents",
            state="stale",
            steps=160,
            seed=7,
            seen_seconds_ago=1500,
            incidents=[incident(9, kind="stale", severity="warning", title="Silent for 25 min")],
            directives=[directive(1, state="expired", expires_at_step=120, effective_step=80)],
        ),
    ]
    more = [
        SampleRun(f"seed-{i}", f"sweep-seed-{i}", project="sweep", steps=90 + 7 * i, seed=20 + i)
        for i in range(8)
    ]
    return named + more


class SampleApi:
    """Answer like ``rlvitals.Api`` from synthetic runs; ``failure`` is raised when set."""

    def __init__(self, runs: list[SampleRun] | None = None) -> None:
        self.known = {run.id: run for run in (sample_runs() if runs is None else runs)}
        self.failure: Exception | None = None
        self.asked: list[str] = []

    def runs(self, *, search: str | None = None, limit: int | None = None) -> Page:
        """List runs whose name holds ``search``."""
        self._enter("runs")
        found = [run for run in self.known.values() if (search or "") in run.name]
        return Page(self._summary(run) for run in found[:limit])

    def run(self, run_id: str) -> dict[str, Any]:
        """Describe one run."""
        run = self._find("run", run_id)
        return {
            **self._summary(run),
            "config": {"learning_rate": 1e-6, "num_generations": SIZE},
            "notes": "",
            "attempts": [],
            "metrics": sorted(run.columns()),
            "abilities": list(run.abilities),
        }

    def history(
        self,
        run_id: str,
        metrics: list[str],
        from_step: int | None = None,
        to_step: int | None = None,
        max_points: int = 2000,
        phase: str = "train",
    ) -> dict[str, Any]:
        """Give columns of metrics in a range of steps, thinned to ``max_points``."""
        run = self._find("history", run_id)
        columns, every = run.columns(), run.eval_every if phase == "eval" else 1
        steps = np.arange(0, run.steps, every) if every else np.arange(0)
        first, last = from_step or 0, run.steps if to_step is None else to_step
        steps = steps[(steps >= first) & (steps <= last)]
        answer = {
            name: _column(steps, columns[name][steps], max_points)
            for name in metrics
            if name in columns and len(steps)
        }
        return {
            "run_id": run_id,
            "phase": phase,
            "attempts": [1],
            "revision": run.revision,
            "sampled": len(steps) > max_points,
            "total_steps": len(steps),
            "metrics": answer,
        }

    def groups(self, run_id: str, step: int) -> dict[str, Any]:
        """Give the groups of one step."""
        run = self._find("groups", run_id)
        if not 0 <= step < run.steps:
            raise ApiError(404, "not_found", f"no groups at step {step}")
        states = {0: "all_fail", SIZE: "all_pass"}
        rows = [
            {
                "group_id": f"g{i}",
                "prompt_id": f"gsm8k/{(step * 64 + i) % 7473}",
                "size": SIZE,
                "n_correct": c,
                "success_rate": c / SIZE,
                "reward_mean": c / SIZE,
                "reward_std": math.sqrt(c * (SIZE - c) / SIZE / (SIZE - 1)),
                "reward_min": float(c == SIZE),
                "reward_max": float(c > 0),
                "state": states.get(c, "live"),
                "source": "0",
            }
            for i, c in enumerate(run.counts(step).tolist())
        ]
        return {"step": step, "groups": rows, "tally": {}}

    def incidents(self, run_id: str) -> list[dict[str, Any]]:
        """List the incidents of a run, newest first."""
        return self._find("incidents", run_id).incidents

    def acknowledge(self, run_id: str, incident_id: str, note: str | None = None) -> Any:
        """Mark an incident as seen."""
        run = self._find("acknowledge", run_id)
        found = next(i for i in run.incidents if i["id"] == incident_id)
        found["acknowledged_by"] = "dashboard"
        run.revision += 1
        return found

    def directives(self, run_id: str) -> list[dict[str, Any]]:
        """List the directives of a run, newest first."""
        return self._find("directives", run_id).directives

    def set_directive(self, run_id: str, wanted: dict[str, Any]) -> dict[str, Any]:
        """Store a directive; refuse it when ``expected_version`` is not the current one."""
        run = self._find("set_directive", run_id)
        current = run.directives[0]["version"] if run.directives else 0
        wanted = dict(wanted)
        if wanted.pop("expected_version", current) != current:
            raise ApiError(409, "conflict", f"the directive is at version {current} by now")
        fresh = directive(current + 1, **{"focal": None, **wanted})
        run.directives.insert(0, fresh)
        run.revision += 1
        return fresh

    def advance(self, run_id: str, steps: int = 1) -> None:
        """Let a run take more steps."""
        run = self.known[run_id]
        run.steps += steps
        run.revision += 1

    def _enter(self, what: str) -> None:
        self.asked.append(what)
        if self.failure is not None:
            raise self.failure

    def _find(self, what: str, run_id: str) -> SampleRun:
        self._enter(what)
        if run_id not in self.known:
            raise ApiError(404, "not_found", f"no run {run_id!r}")
        return self.known[run_id]

    def _summary(self, run: SampleRun) -> dict[str, Any]:
        columns = run.columns() if run.steps < 5000 else {}
        latest = {n: _number(v[-1]) for n, v in columns.items()}
        spark = columns["acr"][-60:] if columns else []
        seen = datetime.now(UTC) - timedelta(seconds=run.seen_seconds_ago)
        open_ones = [i for i in run.incidents if i["state"] == "open"]
        return {
            "id": run.id,
            "project": run.project,
            "name": run.name,
            "group": None,
            "tags": list(run.tags),
            "state": run.state,
            "step": run.steps - 1 if run.steps else None,
            "attempt": 1,
            "started_at": (seen - timedelta(hours=3)).isoformat(),
            "last_seen_at": seen.isoformat(timespec="seconds"),
            "finished_at": seen.isoformat() if run.state == "finished" else None,
            "latest": latest,
            "sparkline": {"acr": [_number(v) for v in spark]},
            "open_incidents": [
                {k: i[k] for k in ("id", "kind", "severity", "title")} for i in open_ones
            ],
            "revision": run.revision,
            "verdict": run.verdict,
            "url": None,
        }


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _column(steps: Any, values: FloatArray, max_points: int) -> dict[str, Any]:
    chosen = select(steps, values, max_points)
    column: dict[str, Any] = {
        "step": steps[chosen.index].tolist(),
        "value": [_number(v) for v in values[chosen.index]],
        "nonfinite": [[int(steps[i]), REST_NAMES[str(float(values[i]))]] for i in chosen.nonfinite],
    }
    if chosen.means is not None:
        column["mean"] = {
            "step": steps[chosen.means.index].tolist(),
            "value": chosen.means.value.tolist(),
            "count": chosen.means.count.tolist(),
        }
    return column
