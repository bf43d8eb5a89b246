"""Compare what one logging call costs the training thread, for us, floors and peers.

Each measurement is a process of its own; rounds interleave the contestants, and ratios are taken
within a round, so that a drifting machine cancels out. `rlvitals online` sends to a real service
over a real PostgreSQL on this machine; the peers write to their local store.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from measuring.tables import Figures, Rounds, medians, ratio, table
from servers.database import database
from servers.ours import Rlvitals

if TYPE_CHECKING:
    from collections.abc import Mapping

BASE = "rlvitals online"
OURS = {
    "scalars": ("floor: queue", "floor: JSON lines", BASE, "rlvitals offline"),
    "groups": ("floor: copy", "floor: histogram", BASE, "rlvitals offline"),
}
PEERS = {
    "scalars": ("trackio local", "wandb offline", "tensorboardX", "mlflow async", "rlprobe"),
    "groups": ("rlwatch", "rlprobe"),
}
CALLS, PACED_CALLS = 1000, 300
FEWER = {"tensorboardX": 300, "mlflow async": 300, "rlwatch": 300}  # calls of the slow ones
PACE_MS = 10
LONGEST_SECONDS = 300


@dataclass(frozen=True)
class Scenario:
    """One table: what is logged, and whether as fast as possible or 100 times a second."""

    title: str
    call: str
    shape: str = "64x8"
    paced: bool = False

    def flags(self, client: str, scale: float) -> list[str]:
        """Write the command line of one contestant."""
        n = PACED_CALLS if self.paced else FEWER.get(client, CALLS)
        flags = [client, "--call", self.call, "--shape", self.shape, "--n", str(int(n * scale))]
        return [*flags, "--pace-ms", str(PACE_MS)] if self.paced else flags


SCENARIOS = [
    Scenario("log, 30 scalars, burst", "scalars"),
    Scenario("log, 30 scalars, 100 a second", "scalars", paced=True),
    Scenario("log_groups, 64x8, burst", "groups"),
    Scenario("log_groups, 64x8, 100 a second", "groups", paced=True),
    Scenario("log_groups, 1024x16, burst", "groups", shape="1024x16"),
    Scenario("log_groups, 1024x16, 100 a second", "groups", shape="1024x16", paced=True),
]


def measure(python: str, flags: list[str], environment: Mapping[str, str]) -> Figures | str:
    """Run one contestant in a process of its own; give its figures, or why there are none."""
    command = [python, "-m", "clients", *flags]
    try:
        done = subprocess.run(
            command,
            cwd=Path(__file__).parent,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=LONGEST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not done after {LONGEST_SECONDS} s"
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            figures: Figures = json.loads(line.removeprefix("RESULT "))
            return figures
    return (done.stderr.strip().splitlines() or ["no output"])[-1]


def run_scenario(
    scenario: Scenario, args: argparse.Namespace, environment: Mapping[str, str]
) -> tuple[dict[str, Rounds], dict[str, str]]:
    """Measure every contestant in interleaved rounds; give figures, and reasons for none."""
    plan = [(sys.executable, client) for client in OURS[scenario.call]]
    plan += [(args.peers, client) for client in PEERS[scenario.call] if args.peers]
    good: dict[str, Rounds] = {}
    failed: dict[str, str] = {}
    for number in range(args.rounds):
        for python, client in plan:
            found = measure(python, scenario.flags(client, args.scale), environment)
            if isinstance(found, str):
                failed[client] = found
            else:
                good.setdefault(client, {})[number] = found
    return good, failed


def report(title: str, good: dict[str, Rounds], failed: dict[str, str]) -> str:
    """Lay the medians over rounds out, with ratios to our online client."""
    columns = {
        "client": "<",
        f"p50 over {BASE}'s": ">",
        "p50 us": ">",
        "p99 us": ">",
        "max us": ">",
        "CPU ms a step": ">",
        "import + init s": ">",
        "finish s": ">",
        "RSS MB": ">",
    }
    rows = []
    for client, own in good.items():
        middle = medians(own)
        rows.append(
            [
                client,
                ratio(own, good.get(BASE), "p50", digits=2),
                f"{middle['p50']:.1f}",
                f"{middle['p99']:.0f}",
                f"{middle['max']:.0f}",
                f"{middle['cpu_ms']:.2f}",
                f"{middle['init_seconds']:.2f}",
                f"{middle['finish_seconds']:.2f}",
                f"{middle['rss_mb']:.0f}",
            ]
        )
    left_out = [f"\nLeft out: {client} ({why})" for client, why in failed.items()]
    return "\n".join([f"### {title}\n", table(columns, rows), *left_out, ""])


def main() -> None:
    """Start a service, measure every scenario, print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="a Python with benchmarks/peers.txt installed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual calls")
    parser.add_argument("--only", default="", help="scenarios whose title holds this text")
    args = parser.parse_args()
    if not args.peers:
        print("Peers are left out: pass --peers PYTHON (see benchmarks/README.md).\n")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hook-cost-")))
        url, _ = stack.enter_context(database(folder))
        service = stack.enter_context(Rlvitals(folder, url))
        environment = {
            "RLVITALS_URL": service.url,
            "RLVITALS_TOKEN": service.token,
            "RLVITALS_SILENT": "1",
        }
        for scenario in SCENARIOS:
            if args.only in scenario.title:
                found = run_scenario(scenario, args, environment)
                print(report(scenario.title, *found), flush=True)


if __name__ == "__main__":
    main()
