"""The maze reproduction must pose, sample, judge and train what its page says."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import reproduce_maze as script  # noqa: E402
from measuring.maze import Arm, difference, with_error  # noqa: E402
from policies.maze import Mazes, make_mazes, neighbours, reaches_goal, solution, without  # noqa: E402
from policies.maze_grpo import (  # noqa: E402
    KS,
    SAMPLES,
    Settings,
    evaluate,
    evaluate_by_samples,
    policy_loss,
    sample,
    train,
)
from policies.maze_solver import Solver, fine_tune, roles, success_chance  # noqa: E402

from rlvitals.remedies import Focal, Remedies  # noqa: E402

TINY = replace(script.CI, side=3, width=16, sft_steps=30, steps=6, every=3, pool=200, test=32)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def some_mazes(n: int, side: int, seed: int = 0) -> Mazes:
    """Carve mazes from a seed."""
    return make_mazes(n, side, np.random.default_rng(seed))


def all_simple_paths(mazes: Mazes, which: int, side: int) -> dict[int, list[list[int]]]:
    """List, for each cell, every way to it through open walls that visits no cell twice."""
    near = neighbours(side)
    found: dict[int, list[list[int]]] = {cell: [] for cell in range(side * side)}

    def extend(path: list[int]) -> None:
        found[path[-1]].append(path)
        for move in range(4):
            if mazes.open[which, path[-1], move] and near[path[-1], move] not in path:
                extend([*path, int(near[path[-1], move])])

    extend([int(mazes.start[which])])
    return found


@pytest.mark.parametrize("side", [2, 3, 4, 5])
def test_every_cell_is_reached_by_exactly_one_simple_path(side: int) -> None:
    """Brute force must find one path to each cell, through the cells marked as above it."""
    mazes = some_mazes(40, side, seed=side)
    assert (mazes.start != mazes.goal).all()
    for which in range(len(mazes)):
        for cell, paths in all_simple_paths(mazes, which, side).items():
            assert len(paths) == 1
            assert set(paths[0]) == set(np.flatnonzero(mazes.above[which, cell]).tolist())


def test_walls_are_the_same_from_both_sides() -> None:
    """A passage must be open both ways, never lead off the grid, and number C - 1."""
    mazes, near = some_mazes(50, 4), neighbours(4)
    assert not mazes.open[:, near < 0].any()
    for move in range(4):
        (inside,) = (near[:, move] >= 0).nonzero()
        back = mazes.open[:, near[inside, move], (move + 2) % 4]
        assert (mazes.open[:, inside, move] == back).all()
    assert (mazes.open.sum(axis=(1, 2)) == 2 * 15).all()


def test_mazes_differ_and_follow_their_seed() -> None:
    """Equal seeds must carve equal mazes, and one seed must carve many different ones."""
    first, again = some_mazes(100, 4), some_mazes(100, 4)
    assert len(without(first, again)) == 0
    assert len(without(first, some_mazes(100, 4, seed=1))) > 90


def test_the_verifier_accepts_the_solution_and_nothing_else() -> None:
    """Of all sequences one move shorter, longer or different, none may pass."""
    mazes = some_mazes(30, 4)
    for which in range(len(mazes)):
        right = solution(mazes, which)
        assert reaches_goal(mazes, which, right)
        broken = [right[:-1], right[1:], [], *([*right, move] for move in range(4))]
        broken += [
            [*right[:at], move, *right[at + 1 :]]
            for at in range(len(right))
            for move in range(4)
            if move != right[at]
        ]
        broken.append([right[0], (right[0] + 2) % 4, *right])  # there, back, and there again
        assert not any(reaches_goal(mazes, which, moves) for moves in broken)


def test_rewards_are_the_verdicts_of_the_verifier() -> None:
    """Each sampled walk must be rewarded as the moves that it wrote deserve."""
    mazes = some_mazes(60, 3)
    chances = torch.full((60, 9, 4), 0.25)
    walks = sample(chances, mazes, 20, np.random.default_rng(0))
    assert 0 < walks.rewards.mean() < 1
    for which, number in np.ndindex(*walks.rewards.shape):
        moves = walks.moves[walks.alive[:, which, number], which, number]
        reward = float(walks.rewards[which, number])
        assert reward == reaches_goal(mazes, which, moves.tolist())


def test_moves_are_drawn_by_their_chances() -> None:
    """The share of each first move must be within 4 standard errors of its chance."""
    mazes = some_mazes(1, 3)
    chances = torch.tensor([0.1, 0.2, 0.3, 0.4]).expand(1, 9, 4)
    n = 20_000
    first = sample(chances, mazes, n, np.random.default_rng(0)).moves[0, 0]
    p = chances[0, 0].numpy()
    shares = np.bincount(first, minlength=4) / n
    assert (np.abs(shares - p) < 4 * np.sqrt(p * (1 - p) / n)).all()


def test_one_token_a_cell_equals_a_decoder_that_reads_one_path() -> None:
    """The log-probs after a path must be those of the plain causal decoder on that path alone."""
    torch.manual_seed(0)
    mazes, solver = some_mazes(8, 4), Solver(4, 16, 2, 2)
    shared = solver(mazes)
    for which in range(len(mazes)):
        for paths in all_simple_paths(mazes, which, 4).values():
            alone = read_one_path(solver, mazes, which, paths[0])
            torch.testing.assert_close(shared[which, paths[0][-1]], alone, atol=1e-5, rtol=1e-4)


def read_one_path(solver: Solver, mazes: Mazes, which: int, path: list[int]) -> torch.Tensor:
    """Run the solver as a causal decoder over the prompt and the cells of one path."""
    walls = torch.from_numpy(mazes.open[which] @ (1 << np.arange(4)))
    role = roles(mazes)[which]
    prompt = solver.walls(walls) + solver.role(role) + solver.place.weight[:16]
    written = solver.written(torch.arange(len(path))) + solver.place.weight[16:][path]
    x = torch.cat([prompt, written])[None]
    mask = torch.full((x.shape[1], x.shape[1]), -torch.inf).triu(1)
    mask[:16, :16] = 0
    for block in solver.blocks:
        x, _ = block(x, mask)
    return solver.head(solver.norm(x[0, -1])).log_softmax(dim=0)


def test_exact_and_sampled_pass_at_k_agree() -> None:
    """Over 256 mazes the two must differ by less than 4 standard errors of the sampled one."""
    torch.manual_seed(0)
    mazes, solver = some_mazes(256, 3), Solver(3, 16, 2, 2)
    fine_tune(solver, mazes, 60, np.random.default_rng(0))
    exact = evaluate(solver, mazes)
    sampled = evaluate_by_samples(solver, mazes, np.random.default_rng(0))
    with torch.no_grad():
        p = success_chance(solver(mazes), mazes).numpy()
    for k in KS:
        # Of SAMPLES / k disjoint sets each fails with chance (1-p)^k; the estimator does no worse.
        miss = (1 - p) ** k
        error = np.sqrt((miss * (1 - miss) * k / SAMPLES).sum()) / len(p)
        assert abs(sampled[f"sampled@{k}"] - exact[f"pass@{k}"]) < 4 * error
    assert exact["pass@1"] < exact["pass@16"] < exact["pass@256"]


def test_the_loss_is_that_of_rollouts_written_out_one_by_one() -> None:
    """Summing gains cell by cell must give the token mean over all rollouts."""
    torch.manual_seed(0)
    mazes, solver = some_mazes(6, 3), Solver(3, 16, 2, 2)
    log_probs = solver(mazes)
    walks = sample(log_probs.detach().exp(), mazes, 5, np.random.default_rng(0))
    gains = np.random.default_rng(1).normal(size=(6, 5)).astype(np.float32)
    total, written = torch.zeros(()), 0
    for step, which, number in zip(*walks.alive.nonzero(), strict=True):
        at = walks.cells[step, which, number], walks.moves[step, which, number]
        total = total + gains[which, number] * log_probs[which][at]
        written += 1
    torch.testing.assert_close(policy_loss(log_probs, walks, gains), -total / written)


def test_fine_tuning_raises_success() -> None:
    """Some dozens of supervised steps must raise pass@1 well above the untrained one."""
    torch.manual_seed(0)
    mazes, test, solver = some_mazes(500, 3), some_mazes(100, 3, seed=1), Solver(3, 32, 2, 2)
    before = evaluate(solver, test)["pass@1"]
    fine_tune(solver, mazes, 200, np.random.default_rng(0))
    assert evaluate(solver, test)["pass@1"] > before + 0.1


def trained(remedies: Remedies | None, seed: int = 0) -> tuple[list[dict[str, float]], Solver]:
    """Train the tiny start of seed 0 for a few steps."""
    solver = copy.deepcopy(script.start(TINY, 0))
    settings = Settings(
        seed=seed, steps=6, lr=1e-3, group_size=4, mazes=8, every=3, remedies=remedies
    )
    return train(solver, *script.all_mazes(TINY), settings), solver


def weights_of(solver: Solver) -> torch.Tensor:
    """Give all weights in one row."""
    return torch.cat([parameter.detach().flatten() for parameter in solver.parameters()])


def test_a_run_follows_from_its_seed() -> None:
    """The same seed must give the same run bit for bit, and another seed another."""
    (rows, solver), (again, twin), (_, other) = trained(None), trained(None), trained(None, seed=1)
    assert rows == again
    assert torch.equal(weights_of(solver), weights_of(twin))
    assert not torch.equal(weights_of(solver), weights_of(other))


def test_gamma_zero_is_grpo_bit_for_bit() -> None:
    """Focal weights with gamma 0 must change nothing, and with gamma 1 something."""
    rows, solver = trained(None)
    zero_rows, zero = trained(Remedies(focal=Focal(0.0)))
    _, focal = trained(Remedies(focal=Focal(1.0)))
    assert rows == zero_rows
    assert torch.equal(weights_of(solver), weights_of(zero))
    assert not torch.equal(weights_of(solver), weights_of(focal))


def test_finished_runs_are_read_from_their_file(tmp_path: Path) -> None:
    """A second call must give the same runs and write none again."""
    size = replace(TINY, sizes=(4,), controls=(4,), steps=3)
    store = tmp_path / "runs.jsonl"
    runs = script.run_all(size, [0], store)
    written = store.read_bytes()
    assert set(runs) == {Arm(4, 0.0, 1e-3), Arm(4, 1.0, 1e-3), Arm(4, 0.0, 5e-4)}
    assert script.run_all(size, [0], store) == runs
    assert store.read_bytes() == written


def test_the_script_prints_its_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Every table must come out, with a line for each arm."""
    size = replace(TINY, sizes=(4,), controls=(4,), steps=3)
    runs = script.run_all(size, [0, 1], None)
    tables = script.tables_of(runs, size)
    assert tables["Final and lowest pass@k"].count("\n") == 3
    assert all("nan" not in rows for rows in tables.values())


def test_a_paired_difference_is_that_of_the_same_seeds() -> None:
    """By hand: gaps 1, 2, 3 have mean 2, error 1/sqrt(3), and 4.303 of it on both sides."""
    base = np.array([10.0, 20.0, 30.0])
    assert difference(base + np.arange(1, 4), base) == "+2.0 [-0.5, +4.5]"
    assert with_error(np.array([1.0, 2.0, 3.0])) == "2.0 ± 0.6"


@pytest.mark.slow
def test_focal_weights_keep_more_of_pass_at_256() -> None:
    """With the seed, start and mazes of GRPO, gamma 1 must end and dip clearly above it."""
    size = replace(script.CI, steps=200)
    grpo, focal = (script.run(size, Arm(32, gamma, size.lr), 0) for gamma in (0.0, 1.0))
    top = [[row["pass@256"] for row in rows] for rows in (grpo, focal)]
    assert grpo[-1]["pass@1"] > grpo[0]["pass@1"]
    assert focal[-1]["pass@1"] > focal[0]["pass@1"]
    assert np.mean(top[1][-4:]) > np.mean(top[0][-4:]) + 0.04
    assert min(top[1]) > min(top[0]) + 0.04
