"""Compare how fast the service, MLflow and trackio take points in, and at what CPU cost.

We and MLflow use the same embedded PostgreSQL; trackio has its own SQLite. One keep-alive
connection a client sends raw HTTP. ``batch`` is 33 steps x 30 scalars a request (MLflow takes at
most 1,000 metrics), ``step`` is one step of 30 scalars, ``single`` is one scalar. CPU is user and
system time of the server's process tree and of PostgreSQL's, divided by the points stored.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from measuring.tables import Rounds, medians, ratio, table
from servers.database import database, second_database
from servers.load import measure, warm_up
from servers.mlflow import start_mlflow
from servers.ours import PackedRlvitals, Rlvitals
from servers.trackio import Trackio

if TYPE_CHECKING:
    from servers.server import Server

POINTS = {"batch": 39_600, "step": 9_000, "single": 600}
# The slow ones get fewer points, so that a round ends.
SHARES = {
    "mlflow": {"batch": 0.5, "step": 0.3, "single": 0.5},
    "trackio": {"step": 0.5, "single": 0.2},
}
Results = dict[tuple[str, int], dict[str, Rounds]]  # by mode and clients, then by server


def start_all(stack: ExitStack, folder: Path, url: str, peers: str | None) -> list[Server]:
    """Start every server, so that the stack stops what has been started."""
    servers: list[Server] = [
        stack.enter_context(Rlvitals(folder, url)),
        stack.enter_context(PackedRlvitals(folder, url)),
    ]
    if peers:
        servers.append(start_mlflow(folder, peers, second_database(url, "mlflow")))
        stack.push(servers[-1])
        servers.append(stack.enter_context(Trackio(folder, peers)))
    return servers


def collect(servers: list[Server], args: argparse.Namespace, postgres: int) -> Results:
    """Measure all servers in interleaved rounds."""
    results: Results = {}
    for number in range(args.rounds):
        for mode in args.modes.split(","):
            for clients in (1, 4) if mode == "batch" else (1,):
                for server in servers:
                    share = SHARES.get(server.name, {}).get(mode, 1.0) * args.scale
                    points = max(990 * clients, int(POINTS[mode] * share))
                    pids = [] if server.name == "trackio" else [postgres]
                    figures = measure(server, mode, clients, points, pids)
                    by_server = results.setdefault((mode, clients), {})
                    by_server.setdefault(server.label, {})[number] = figures
                    said = {name: round(value, 1) for name, value in figures.items()}
                    print(mode, clients, server.label, said, file=sys.stderr, flush=True)
    return results


def report(results: Results) -> str:
    """Lay medians over rounds out, with ratios to MLflow in the same round."""
    columns = {
        "mode, clients": "<",
        "server": "<",
        "points/s over mlflow's": ">",
        "CPU over mlflow's": ">",
        "points/s": ">",
        "p50 ms": ">",
        "p99 ms": ">",
        "CPU us a point": ">",
    }
    rows = []
    for (mode, clients), by_server in results.items():
        mlflow = next((own for label, own in by_server.items() if label.startswith("mlflow")), None)
        for label, own in by_server.items():
            middle = medians(own)
            rows.append(
                [
                    f"{mode}, {clients}",
                    label,
                    ratio(own, mlflow, "rate"),
                    ratio(own, mlflow, "cpu", digits=3),
                    f"{middle['rate']:,.0f}",
                    f"{middle['p50']:.1f}",
                    f"{middle['p99']:.1f}",
                    f"{middle['cpu']:.1f}",
                ]
            )
    return table(columns, rows)


def main() -> None:
    """Start the servers, measure, print the table, and stop the servers whatever happens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="a Python with benchmarks/peers.txt installed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual points")
    parser.add_argument("--modes", default="batch,step,single")
    args = parser.parse_args()
    if not args.peers:
        print("Peers are left out: pass --peers PYTHON (see benchmarks/README.md).\n")
    with ExitStack() as stack:
        # MLflow's children may write a last file while the folder goes.
        given = tempfile.TemporaryDirectory(prefix="ingest-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(given))
        url, postgres = stack.enter_context(database(folder))
        servers = start_all(stack, folder, url, args.peers)
        for server in servers:
            warm_up(server)
        print(report(collect(servers, args, postgres)))


if __name__ == "__main__":
    main()
