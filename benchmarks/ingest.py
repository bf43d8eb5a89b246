"""Compare how fast the service, MLflow and trackio take points in, and at what CPU cost.

We and MLflow use the same embedded PostgreSQL; trackio has its own SQLite. One keep-alive
connection a client sends raw HTTP. ``batch`` is 33 steps x 30 scalars a request (MLflow takes at
most 1,000 metrics), ``step`` is one step of 30 scalars, ``single`` is one scalar. CPU is user and
system time of the server's process tree and of PostgreSQL's, divided by the points stored.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec

KEYS = [f"train/m{number:02d}" for number in range(30)]
POINTS = {"batch": 39_600, "step": 9_000, "single": 600}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tree_cpu(roots: list[int]) -> float:
    """Sum user and system seconds of the processes and all their descendants, the reaped included."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry))
            used[int(entry)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total, stack = 0.0, list(roots)
    while stack:
        pid = stack.pop()
        total += used.get(pid, 0.0)
        stack += children.get(pid, [])
    return total


def rows(mode: str, points: int):
    """Yield lists of (step, {key: value}); one list a request."""
    value = random.random
    steps = range(points // len(KEYS))
    if mode == "batch":
        for first in range(0, len(steps), 33):
            yield [(step, {key: value() for key in KEYS}) for step in steps[first:first + 33]]
    elif mode == "step":
        for step in steps:
            yield [(step, {key: value() for key in KEYS})]
    else:
        for step in steps:
            for key in KEYS:
                yield [(step, {key: value()})]


class Server:
    """A server under test: how to start it, and how to phrase a request to it."""

    name: str
    process: subprocess.Popen[bytes]
    headers: dict[str, str]

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def call(self, connection: http.client.HTTPConnection, path: str, body: bytes) -> bytes:
        connection.request("POST", path, body, {"Content-Type": "application/json", **self.headers})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{self.name} answered {answer.status}: {text[:300]!r}")
        return text

    def wait(self, path: str) -> None:
        deadline = time.monotonic() + 240  # MLflow needs a minute on a loaded machine
        while time.monotonic() < deadline:
            try:
                connection = self.connect()
                connection.request("GET", path)
                if connection.getresponse().status < 500:
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise RuntimeError(f"{self.name} did not come up")

    def wait_or_stop(self, path: str) -> None:
        try:
            self.wait(path)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)

    def start_process(self, command: list[str], **env: str) -> None:
        self.log = tempfile.NamedTemporaryFile(prefix=f"{self.name}-", suffix=".log", delete=False)
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, start_new_session=True,
                                        env=os.environ | env)


class Rlvitals(Server):
    def __init__(self, database_url: str, encoding: str = "json") -> None:
        self.name = "rlvitals" if encoding == "json" else f"rlvitals ({encoding})"
        self.encoding = encoding
        self.port = free_port()
        token = "rlv_" + uuid.uuid4().hex + uuid.uuid4().hex
        folder = Path(tempfile.mkdtemp(prefix="ingest-"))
        (folder / "token").write_text(token)
        self.headers = {"Authorization": f"Bearer {token}"}
        if encoding == "msgpack":
            self.headers["Content-Type"] = "application/msgpack"
        self.start_process([sys.executable, "-m", "rlvitals_service"], OMP_NUM_THREADS="1", RLVITALS_PORT=str(self.port),
                           RLVITALS_DATABASE_URL=database_url, RLVITALS_BOOTSTRAP_TOKEN_FILE=str(folder / "token"))
        self.wait_or_stop("/readyz")

    def new_run(self, number: int) -> str:
        body = {"project": "bench", "key": uuid.uuid4().hex, "name": f"ingest-{number}", "attempt_key": uuid.uuid4().hex}
        plain = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        plain.request("POST", "/api/v1/runs", json.dumps(body), {**self.headers, "Content-Type": "application/json"})
        return json.loads(plain.getresponse().read())["id"]

    def requests(self, run: str, mode: str, points: int):
        encode = msgspec.msgpack.encode if self.encoding == "msgpack" else lambda o: json.dumps(o).encode()
        for request in rows(mode, points):
            records = [{"step": step, "scalars": values} for step, values in request]
            yield f"/api/v1/runs/{run}/steps", encode({"records": records}), sum(len(v) for _, v in request)


class Mlflow(Server):
    name = "mlflow"
    headers: dict[str, str] = {}

    def __init__(self, python: str, database_url: str) -> None:
        self.port = free_port()
        self.start_process([python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "2",
                            "--backend-store-uri", database_url, "--default-artifact-root", tempfile.mkdtemp()],
                           MLFLOW_DISABLE_TELEMETRY="true", PATH=f"{Path(python).parent}:{os.environ['PATH']}")
        self.wait_or_stop("/health")

    def new_run(self, number: int) -> str:
        connection = self.connect()
        experiment = json.loads(self.call(connection, "/api/2.0/mlflow/experiments/create",
                                          json.dumps({"name": uuid.uuid4().hex}).encode()))["experiment_id"]
        created = self.call(connection, "/api/2.0/mlflow/runs/create",
                            json.dumps({"experiment_id": experiment, "start_time": int(time.time() * 1000)}).encode())
        return json.loads(created)["run"]["info"]["run_id"]

    def requests(self, run: str, mode: str, points: int):
        now = int(time.time() * 1000)
        for request in rows(mode, points):
            metrics = [{"key": key, "value": value, "timestamp": now + step, "step": step}
                       for step, values in request for key, value in values.items()]
            if mode == "single":
                yield "/api/2.0/mlflow/runs/log-metric", json.dumps({"run_id": run, **metrics[0]}).encode(), 1
            else:
                yield "/api/2.0/mlflow/runs/log-batch", json.dumps({"run_id": run, "metrics": metrics}).encode(), len(metrics)


class Trackio(Server):
    name = "trackio"

    def __init__(self, python: str) -> None:
        self.port = free_port()
        folder = tempfile.mkdtemp(prefix="trackio-")
        self.start_process([python, "-m", "trackio.cli", "show", "--host", "127.0.0.1"], TRACKIO_DIR=folder,
                           GRADIO_SERVER_PORT=str(self.port), PYTHONUNBUFFERED="1")
        token = self.read_token()
        self.headers = {"X-Trackio-Write-Token": token}
        warm = {"logs": [self.entry("warm", 0, {"a": 1.0})], "hf_token": None}
        self.call(self.connect(), "/api/bulk_log", json.dumps(warm).encode())

    def read_token(self) -> str:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = re.search(r"https?://\S*write_token=\S+", Path(self.log.name).read_text())
            if found:
                address = urlsplit(found.group())
                self.port = address.port or self.port
                return parse_qs(address.query)["write_token"][0]
            time.sleep(0.3)
        raise RuntimeError("trackio printed no address: " + Path(self.log.name).read_text()[-300:])

    @staticmethod
    def entry(run: str, step: int, values: dict[str, float]) -> dict:
        return {"project": "bench", "run": run, "run_id": run, "metrics": values, "step": step, "config": None,
                "log_id": uuid.uuid4().hex}

    def new_run(self, number: int) -> str:
        return f"{uuid.uuid4().hex}-{number}"

    def requests(self, run: str, mode: str, points: int):
        for request in rows(mode, points):
            logs = [self.entry(run, step, values) for step, values in request]
            yield "/api/bulk_log", json.dumps({"logs": logs, "hf_token": None}).encode(), sum(len(v) for _, v in request)


def measure(server: Server, mode: str, clients: int, points: int, database_pids: list[int]) -> dict[str, float]:
    """Send the points through so many connections at once; give rates, latencies and CPU."""
    runs = [server.new_run(number) for number in range(clients)]
    plans = [list(server.requests(run, mode, points // clients)) for run in runs]
    latencies: list[float] = []
    errors: list[BaseException] = []

    def work(plan: list) -> None:
        connection = server.connect()
        try:
            for path, body, _ in plan:
                begin = time.perf_counter()
                server.call(connection, path, body)
                latencies.append((time.perf_counter() - begin) * 1000)
        except Exception as error:
            errors.append(error)

    pids = [server.process.pid, *database_pids]
    cpu, begin = tree_cpu(pids), time.perf_counter()
    threads = [threading.Thread(target=work, args=(plan,)) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall, cpu = time.perf_counter() - begin, tree_cpu(pids) - cpu
    if errors:
        raise errors[0]
    stored = sum(count for plan in plans for _, _, count in plan)
    latencies.sort()
    return {"points_per_second": stored / wall, "p50_ms": latencies[len(latencies) // 2],
            "p99_ms": latencies[int(len(latencies) * 0.99)], "cpu_us_per_point": cpu / stored * 1e6}


def report(results: list[tuple[str, int, str, dict[str, float]]]) -> str:
    """Lay medians over rounds out as a Markdown table, with each server's ratio to MLflow's rate."""
    lines = ["| mode, clients | server | points/s | p50 ms | p99 ms | CPU us a point | points/s / mlflow | CPU / mlflow |",
             "|---|---|---:|---:|---:|---:|---:|---:|"]
    kinds = list(dict.fromkeys((mode, clients) for mode, clients, _, _ in results))
    for mode, clients in kinds:
        mine = [(name, figures) for m, c, name, figures in results if (m, c) == (mode, clients)]
        middle = {name: {key: statistics.median(f[key] for n, f in mine if n == name) for key in mine[0][1]}
                  for name in dict.fromkeys(name for name, _ in mine)}
        floor = middle.get("mlflow")
        for name, row in middle.items():
            rate = f"{row['points_per_second'] / floor['points_per_second']:.1f}" if floor else "-"
            cost = f"{row['cpu_us_per_point'] / floor['cpu_us_per_point']:.3f}" if floor else "-"
            lines.append(f"| {mode}, {clients} | {name} | {row['points_per_second']:,.0f} | {row['p50_ms']:.1f} "
                         f"| {row['p99_ms']:.1f} | {row['cpu_us_per_point']:.1f} | {rate} | {cost} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="a Python with benchmarks/peers.txt installed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual number of points")
    parser.add_argument("--modes", default="batch,step,single")
    args = parser.parse_args()

    from rlvitals_service.postgres import EmbeddedPostgres

    with tempfile.TemporaryDirectory(prefix="ingest-pg-") as folder:
        os.chmod(folder, 0o755)  # the database account must reach its data
        with EmbeddedPostgres(Path(folder) / "data") as postgres:
            database_pids = [int((postgres.data_dir / "cluster" / "postmaster.pid").read_text().split()[0])]
            servers: list[Server] = []
            try:
                servers.append(Rlvitals(postgres.url))
                servers.append(Rlvitals(postgres.url, "msgpack"))
                if args.peers:
                    servers.append(Mlflow(args.peers, make_database(postgres.url, "mlflow")))
                    servers.append(Trackio(args.peers))
                else:
                    print("Peers are left out: pass --peers PYTHON (see benchmarks/README.md).\n")
                print(report(collect(servers, args, database_pids)))
            finally:
                for server in servers:
                    server.stop()


def make_database(url: str, name: str) -> str:
    """Create a database beside ours on the same cluster; give its URL for psycopg2."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"create database {name}"))
    return engine.url.set(drivername="postgresql+psycopg2", database=name).render_as_string(hide_password=False)


def collect(servers: list[Server], args: argparse.Namespace, database_pids: list[int]) -> list:
    """Measure all servers in interleaved rounds."""
    shares = {"mlflow": {"batch": 0.5, "step": 0.3, "single": 0.5}, "trackio": {"step": 0.5}}
    results = []
    for _ in range(args.rounds):
        for mode in args.modes.split(","):
            for clients in (1, 4) if mode == "batch" else (1,):
                for server in servers:
                    share = shares.get(server.name, {}).get(mode, 1.0) * args.scale
                    points = max(990 * clients, int(POINTS[mode] * share)) if mode == "batch" else max(60, int(POINTS[mode] * share))
                    pids = [] if server.name == "trackio" else database_pids
                    results.append((mode, clients, server.name, measure(server, mode, clients, points, pids)))
                    print(mode, clients, server.name, {k: round(v, 1) for k, v in results[-1][3].items()}, file=sys.stderr, flush=True)
    return results


if __name__ == "__main__":
    main()
