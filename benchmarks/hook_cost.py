"""Compare what one logging call costs the training thread, for us, floors and peers.

Each measurement is a process of its own; rounds interleave the contestants, and ratios are taken
within a round, so that a drifting machine cancels out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

CONTESTANTS = Path(__file__).with_name("contestants.py")
OURS = ("floor_queue", "floor_jsonl", "rlvitals_online", "rlvitals_offline")
OUR_GROUPS = ("floor_copy", "floor_histogram", "rlvitals_online", "rlvitals_offline")
PEERS = {"trackio_local": 1000, "wandb_offline": 1000, "tensorboardx": 300, "mlflow_async": 300, "rlprobe": 1000}
PEER_GROUPS = {"rlwatch": 300, "rlprobe": 1000}

SCENARIOS = [
    ("log, 30 scalars, burst", ["--call", "scalars"], OURS, PEERS, "rlvitals_online"),
    ("log, 30 scalars, 100 a second", ["--call", "scalars", "--pace-ms", "10"], OURS, PEERS, "rlvitals_online"),
    ("log_groups, 64x8, burst", ["--call", "groups", "--shape", "64x8"], OUR_GROUPS, PEER_GROUPS, "rlvitals_online"),
    ("log_groups, 64x8, 100 a second", ["--call", "groups", "--shape", "64x8", "--pace-ms", "10"], OUR_GROUPS, PEER_GROUPS, "rlvitals_online"),
    ("log_groups, 1024x16, burst", ["--call", "groups", "--shape", "1024x16"], OUR_GROUPS, PEER_GROUPS, "rlvitals_online"),
    ("log_groups, 1024x16, 100 a second", ["--call", "groups", "--shape", "1024x16", "--pace-ms", "10"], OUR_GROUPS, PEER_GROUPS, "rlvitals_online"),
]


def measure(python: str, client: str, flags: list[str], n: int) -> dict[str, float] | str:
    """Run one contestant in a process of its own; give its figures, or why there are none."""
    command = [python, str(CONTESTANTS), client, *flags, "--n", str(n)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    return (done.stderr.strip().splitlines() or ["no output"])[-1]


def run_scenario(scenario: tuple, rounds: int, peers: str | None, scale: float) -> list[dict]:
    """Measure every contestant of a scenario in interleaved rounds."""
    _, flags, ours, peer_counts, _ = scenario
    paced = "--pace-ms" in flags
    plan = [(sys.executable, name, 1000) for name in ours]
    plan += [(peers, name, n) for name, n in peer_counts.items()] if peers else []
    results = []
    for number in range(rounds):
        for python, name, n in plan:
            figures = measure(python, name, flags, max(50, int((300 if paced else n) * scale)))
            results.append({"round": number, "client": name, "figures": figures})
    return results


def table(scenario: tuple, results: list[dict]) -> str:
    """Lay the medians over rounds out as a Markdown table, with ratios to our online client."""
    title, _, _, _, reference = scenario
    good: dict[str, list[dict]] = {}
    failed: dict[str, str] = {}
    for row in results:
        if isinstance(row["figures"], dict):
            good.setdefault(row["client"], []).append(row["figures"] | {"round": row["round"]})
        else:
            failed[row["client"]] = row["figures"]
    base = {row["round"]: row["p50"] for row in good.get(reference, [])}
    lines = [f"### {title}", "", "| client | p50 us | p99 us | max us | p50 / rlvitals online | process CPU ms a step | finish s |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    for name, rows in good.items():
        middle = {key: statistics.median(row[key] for row in rows) for key in ("p50", "p99", "max", "cpu_ms_per_step", "finish_seconds")}
        ratios = [row["p50"] / base[row["round"]] for row in rows if row["round"] in base]
        span = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})" if ratios else "-"
        lines.append(f"| {name} | {middle['p50']:.1f} | {middle['p99']:.0f} | {middle['max']:.0f} | {span} "
                     f"| {middle['cpu_ms_per_step']:.2f} | {middle['finish_seconds']:.2f} |")
    lines += [f"\nLeft out: {name} ({why})" for name, why in failed.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="a Python with benchmarks/peers.txt installed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual number of calls")
    parser.add_argument("--only", default="", help="scenarios whose title holds this text")
    args = parser.parse_args()
    if not args.peers:
        print("Peers are left out: pass --peers PYTHON (see benchmarks/README.md).\n")
    for scenario in SCENARIOS:
        if args.only in scenario[0]:
            print(table(scenario, run_scenario(scenario, args.rounds, args.peers, args.scale)), flush=True)


if __name__ == "__main__":
    main()
