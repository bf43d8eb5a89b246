"""GRPO with TRL on a CPU with rlvitals attached: one line, `rlvitals.trainers.trl.attach`.

A two-layer Llama with a 15-token tokenizer, both built here, so nothing is downloaded. Two tasks:

    copy  repeat the digit of the prompt: learnt in 200 steps, so the last groups are all right
    add   sums modulo 10: the policy settles on one guess a prompt long before it has learnt them;
          its groups are all wrong or all right and the gradient is gone

    python examples/trl_grpo.py --task add --steps 200 --seed 0
"""

from __future__ import annotations

import argparse
import random
import tempfile
from typing import TYPE_CHECKING, Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
from trl import GRPOConfig, GRPOTrainer

import rlvitals
import rlvitals.trainers.trl

if TYPE_CHECKING:
    from pathlib import Path

PAD, BOS, EOS = "<pad>", "<bos>", "<eos>"
WORDS = [PAD, BOS, EOS, *map(str, range(10)), "+", "="]


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Build a word-level tokenizer over the ten digits, two signs and three special tokens."""
    core = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token=PAD))
    core.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        bos_token=BOS,
        eos_token=EOS,
        padding_side="left",
        # The default also emits token_type_ids, which generate() refuses for a Llama.
        model_input_names=["input_ids", "attention_mask"],
    )


def build_model() -> LlamaForCausalLM:
    """Build an untrained two-layer Llama of width 64."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(WORDS),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=32,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )
    )


def build_dataset(task: str) -> Dataset:
    """List the prompts of a task, each with a stable id and its one right answer."""
    if task == "copy":
        rows = [{"id": f"copy {x}", "prompt": f"{x} =", "answer": str(x)} for x in range(10)]
    elif task == "add":
        pairs = [(x, y) for x in range(10) for y in range(10)]
        dice = random.Random(1)
        rows = [
            {"id": f"add {x} {y}", "prompt": f"{x} + {y} =", "answer": str((x + y) % 10)}
            for x, y in (dice.choice(pairs) for _ in range(64))
        ]
    else:
        raise ValueError(f"task is {task!r}; it must be 'copy' or 'add'")
    return Dataset.from_list(rows)


def first_word_is_right(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """Reward 1 if the completion starts with the right answer, else 0."""
    return [
        float(text.split()[:1] == [right]) for text, right in zip(completions, answer, strict=True)
    ]


def build_trainer(task: str, steps: int, seed: int, output_dir: str | Path) -> GRPOTrainer:
    """Build a trainer of 8 groups of 8 completions a step on the copy or the add task."""
    set_seed(seed)
    return GRPOTrainer(
        model=build_model(),
        processing_class=build_tokenizer(),
        reward_funcs=first_word_is_right,
        train_dataset=build_dataset(task),
        args=GRPOConfig(
            output_dir=str(output_dir),
            max_steps=steps,
            seed=seed,
            learning_rate=2e-3,
            lr_scheduler_type="constant",
            per_device_train_batch_size=64,
            num_generations=8,
            max_completion_length=2,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
        ),
    )


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="A tiny TRL run with rlvitals attached.")
    parser.add_argument("--task", choices=["copy", "add"], default="add")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default=None)
    parser.add_argument("--project", default="demo")
    return parser.parse_args()


def main() -> None:
    """Train once and stream the run."""
    args = parse_args()
    torch.set_num_threads(1)
    run = rlvitals.init(
        project=args.project, name=args.name, config=vars(args), success_threshold=1.0
    )
    with tempfile.TemporaryDirectory() as folder:
        trainer = build_trainer(args.task, args.steps, args.seed, folder)
        rlvitals.trainers.trl.attach(trainer, run)
        trainer.train()
    run.finish()


if __name__ == "__main__":
    main()
