"""Log with one client in a fresh process and print one ``RESULT`` line of JSON.

``python contestants.py NAME --call scalars|groups [--n N] [--pace-ms MS] [--url URL]``

Runs under any interpreter: it imports only the client it is asked for, so that peers can live in
an environment of their own. Times wrap the logging call alone, in microseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import resource
import statistics
import tempfile
import threading
import time

NAMES = [
    f"{family}/{kind}"
    for family in ("train", "reward", "kl", "grad", "rollout")
    for kind in ("mean", "std", "min", "max", "p50", "count")
]


def scalars(step, rng):
    return {name: rng.random() * (1 + step % 7) for name in NAMES}


def floor_queue(_):
    box: queue.SimpleQueue = queue.SimpleQueue()
    sink = open("metrics.jsonl", "a")

    def drain():
        while (item := box.get()) is not None:
            sink.write(json.dumps(item) + "\n")
        sink.close()

    thread = threading.Thread(target=drain, daemon=True)
    thread.start()
    return (lambda step, row: box.put((step, row))), (lambda: (box.put(None), thread.join()))


def floor_jsonl(_):
    sink = open("metrics.jsonl", "a", buffering=1 << 16)
    return (lambda step, row: sink.write(json.dumps({"step": step, **row}) + "\n")), sink.close


def rlvitals(args, mode):
    import rlvitals as client

    run = client.init(project="bench", name=f"hook-{os.getpid()}", mode=mode, success_threshold=1.0)
    if args.call == "groups":
        return (lambda step, rewards: run.log_groups(rewards, step=step)), run.finish
    return (lambda step, row: run.log(row, step=step)), run.finish


def trackio_local(args):
    os.environ["TRACKIO_DIR"] = os.getcwd() + "/trackio"
    import trackio

    trackio.init(project="bench", name=f"hook-{os.getpid()}", embed=False)
    return (lambda step, row: trackio.log(row, step=step)), trackio.finish


def wandb_offline(_):
    os.environ.update(WANDB_SILENT="true", WANDB_DIR=os.getcwd(), WANDB_MODE="offline")
    import wandb

    run = wandb.init(project="bench", dir=os.getcwd())
    return (lambda step, row: run.log(row, step=step)), run.finish


def tensorboardx(_):
    from tensorboardX import SummaryWriter

    writer = SummaryWriter("tb")

    def log(step, row):
        for name, value in row.items():
            writer.add_scalar(name, value, step)

    return log, writer.close


def mlflow_async(args):
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{os.getcwd()}/mlflow.db")
    mlflow.set_experiment("bench")
    mlflow.start_run()

    def finish():
        mlflow.flush_async_logging()
        mlflow.end_run()

    return (lambda step, row: mlflow.log_metrics(row, step=step, synchronous=False)), finish


def floor_histogram(_):
    import numpy as np

    def count(_, rewards):
        np.bincount(rewards.sum(1).astype(np.int64), minlength=rewards.shape[1] + 1)

    return count, lambda: None


def floor_copy(_):
    import collections

    kept = collections.deque(maxlen=64)
    return (lambda step, rewards: kept.append((step, rewards.copy()))), lambda: None


def rlwatch(_):
    import rlwatch as watch

    session = watch.attach(framework="manual", storage={"log_dir": os.getcwd()})
    if session is None:
        import rlwatch as session  # the module keeps the session itself in some versions

    return (lambda step, rewards: session.log_step(step, rewards=rewards.ravel())), lambda: None


def rlprobe(args):
    from rlprobe.recorder import Recorder

    recorder = Recorder(os.getcwd(), algorithm="grpo", install_handlers=False)
    if args.call == "groups":
        def log(step, rewards):
            spread = rewards.std(1)
            recorder.log_step(
                step,
                reward_mean=float(rewards.mean()),
                reward_std=float(spread.mean()),
                zero_variance_group_frac=float((spread == 0).mean()),
            )
        return log, recorder.close
    return (lambda step, row: recorder.log_step(step, reward_mean=row["reward/mean"])), recorder.close


CLIENTS = {
    "floor_queue": floor_queue,
    "floor_jsonl": floor_jsonl,
    "floor_histogram": floor_histogram,
    "floor_copy": floor_copy,
    "rlvitals_online": lambda args: rlvitals(args, "online"),
    "rlvitals_offline": lambda args: rlvitals(args, "offline"),
    "trackio_local": trackio_local,
    "wandb_offline": wandb_offline,
    "tensorboardx": tensorboardx,
    "mlflow_async": mlflow_async,
    "rlwatch": rlwatch,
    "rlprobe": rlprobe,
}


def payloads(args):
    if args.call == "scalars":
        rng = random.Random(0)
        return lambda step: scalars(step, rng)
    import numpy as np

    n_groups, group_size = (int(part) for part in args.shape.split("x"))
    rng = np.random.default_rng(0)
    rates = rng.random((n_groups, 1))
    return lambda step: (rng.random((n_groups, group_size)) < rates).astype(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("client", choices=CLIENTS)
    parser.add_argument("--call", choices=["scalars", "groups"], default="scalars")
    parser.add_argument("--shape", default="64x8", help="groups x group size")
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--warm", type=int, default=50)
    parser.add_argument("--pace-ms", type=float, default=0)
    args = parser.parse_args()
    os.chdir(tempfile.mkdtemp(prefix="hook-cost-"))
    make = payloads(args)
    started = time.perf_counter()
    log, finish = CLIENTS[args.client](args)
    init_seconds = time.perf_counter() - started
    for step in range(args.warm):
        log(step, make(step))
    taken, cpu = [], time.process_time()
    for step in range(args.warm, args.warm + args.n):
        payload = make(step)
        begin = time.perf_counter_ns()
        log(step, payload)
        taken.append((time.perf_counter_ns() - begin) / 1000)
        if args.pace_ms:
            time.sleep(args.pace_ms / 1000)
    cpu = time.process_time() - cpu
    begin = time.perf_counter()
    finish()
    finish_seconds = time.perf_counter() - begin
    taken.sort()
    print("RESULT " + json.dumps({
        "client": args.client, "n": args.n,
        "p50": taken[len(taken) // 2], "p99": taken[int(len(taken) * 0.99)], "max": taken[-1],
        "mean": statistics.fmean(taken), "init_seconds": init_seconds,
        "finish_seconds": finish_seconds, "cpu_ms_per_step": cpu / args.n * 1000,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }), flush=True)


if __name__ == "__main__":
    main()
