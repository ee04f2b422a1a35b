"""The recipe, step by step: python -m decoding.alignment data | student | train | evaluate | cost | lanes | export | plot."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from decoding.alignment.cost import pass_seconds
from decoding.alignment.data import ANSWER, Conversations, split, write_shards
from decoding.alignment.evaluate import agreement, mean_law
from decoding.alignment.lanes import first_prompts, predicted_tokens_per_pass, run_lane
from decoding.alignment.losses import LOSSES
from decoding.alignment.plot import plot_curve, read_logs
from decoding.alignment.student import (
    export,
    fit_map,
    frequent_ids,
    indispensable_ids,
    make_student,
    set_own_weights,
    trainable,
)
from decoding.alignment.train import TrainSettings, checkpoint_path, train
from decoding.joined import load_joined
from decoding.language_model import LanguageModel
from decoding.pair import ModelPair
from decoding.settings import DecodingSettings
from decoding.weights import PACKAGED_TARGET, SHIPPED_DRAFT, cache_folder, locate

EVALUATED = [
    DecodingSettings(),
    *(DecodingSettings(temperature=temperature) for temperature in (0, 0.3, 0.6, 1.5)),
    DecodingSettings(top_k=0, top_p=1),
]


def main() -> None:
    arguments = parser().parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    arguments.run_step(arguments)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m decoding.alignment", description="Make the draft model of a target.")
    common = argparse.ArgumentParser(add_help=False, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    common.add_argument("--target", default=PACKAGED_TARGET, help="model to align with (see decoding.weights)")
    common.add_argument("--work", type=Path, default=cache_folder() / "alignment", help="folder of data and runs")
    common.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cpu, cuda, …")
    common.add_argument("--threads", type=int, default=0, help="CPU threads; 0 leaves torch's choice")
    common.add_argument(
        "--held-out", type=int, nargs="+", default=[1], help="numbers of the shards kept for evaluation"
    )
    steps = top.add_subparsers(required=True)

    def step(name: str, run: Callable[[argparse.Namespace], None], text: str) -> argparse.ArgumentParser:
        added = steps.add_parser(
            name, parents=[common], help=text, description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter
        )
        added.set_defaults(run_step=run)
        return added

    add = step("data", run_data, "let the target write conversations; shards that exist are kept").add_argument
    add("--shards", type=int, default=16, help="how many shards there shall be")
    add("--rows", type=int, default=128, help="conversations per shard")
    add("--length", type=int, default=256, help="tokens per conversation")
    add("--seed", type=int, default=0)

    add = step("student", run_student, "make an untrained draft from layers of the target").add_argument
    add("folder", type=Path, help="where to write it")
    add("--layers", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="layers of the target to start from")
    add("--head", type=int, default=12288, help="tokens that the draft can say, by frequency in the data")

    add = step("train", run_train, "train a draft; goes on where a killed run stood").add_argument
    add("start", help="draft to start from: a folder, or the name of a shipped one")
    add("run", help="name of the run, a folder under --work")
    add("--loss", choices=LOSSES, default=TrainSettings.loss)
    add(
        "--hidden-weight", type=float, default=TrainSettings.hidden_weight, help="weight of the hidden-state regression"
    )
    add("--steps", type=int, default=TrainSettings.steps)
    add("--rows", type=int, default=TrainSettings.rows, help="conversations per step")
    add("--learning-rate", type=float, default=TrainSettings.learning_rate)
    add("--warmup", type=int, default=TrainSettings.warmup, help="steps")
    add("--cooldown", type=float, default=TrainSettings.cooldown, help="share of the steps")
    add("--seed", type=int, default=TrainSettings.seed)
    add("--conversations", type=int, default=24, help="held-out conversations for the learning curve")

    add = step("evaluate", run_evaluate, "acceptance rate on held-out conversations").add_argument
    add("drafts", nargs="*", default=[SHIPPED_DRAFT], help="folders, or names of shipped drafts")
    add("--conversations", type=int, default=1000, help="how many of the held-out conversations, at most")

    add = step("cost", run_cost, "cost of a draft pass over that of a target pass").add_argument
    add("draft", nargs="?", default=SHIPPED_DRAFT, help="a folder, or the name of a shipped draft")
    add("--context", type=int, default=128, help="tokens already in the cache")
    add("--repeats", type=int, default=50)

    add = step("lanes", run_lanes, "run the real methods and compare with what alpha predicts").add_argument
    add("draft", nargs="?", default=SHIPPED_DRAFT, help="a folder, or the name of a shipped draft")
    add("--conversations", type=int, default=20, help="held-out conversations whose first prompts are used")
    add("--tokens", type=int, default=64, help="most tokens per answer")
    add("--temperature", type=float, default=1.0)
    add("--alpha", type=float, help="acceptance rate that `evaluate` found at this temperature")

    add = step("export", run_export, "write a run's weights as a draft folder, in half precision").add_argument
    add("start", help="draft that the run started from")
    add("run", help="name of the run")
    add("folder", type=Path, help="where to write")

    add = step("plot", run_plot, "draw the learning curve of a run, or of runs that followed one another").add_argument
    add("runs", nargs="+", help="names of the runs, first to last")
    add("--file", type=Path, required=True, help="where to write, .svg or .png")
    return top


def load_target(arguments: argparse.Namespace) -> PreTrainedModel:
    model = AutoModelForCausalLM.from_pretrained(locate(arguments.target), dtype=torch.float32, local_files_only=True)
    return model.to(arguments.device).eval()


def load_tokenizer(arguments: argparse.Namespace) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(locate(arguments.target), local_files_only=True)


def load_draft(arguments: argparse.Namespace, source: str) -> PreTrainedModel:
    return load_joined(locate(source), torch.float32).to(arguments.device)


def load_held_out(arguments: argparse.Namespace) -> Conversations:
    data = Conversations.load(split(shards(arguments), arguments.held_out)[1])
    return data.select(torch.arange(min(arguments.conversations, len(data))))


def shards(arguments: argparse.Namespace) -> Path:
    return arguments.work / "shards"


def run_data(arguments: argparse.Namespace) -> None:
    size = {"shards": arguments.shards, "rows": arguments.rows, "length": arguments.length, "seed": arguments.seed}
    write_shards(load_target(arguments), load_tokenizer(arguments), shards(arguments), **size)


def run_student(arguments: argparse.Namespace) -> None:
    target, tokenizer = load_target(arguments), load_tokenizer(arguments)
    data = Conversations.load(split(shards(arguments), arguments.held_out)[0])
    ids = frequent_ids(mean_law(target.lm_head.weight.detach(), data), arguments.head, indispensable_ids(tokenizer))
    student = make_student(target, arguments.layers, ids)
    fit_map(student, data)
    export(student, tokenizer, arguments.target, arguments.folder)


def run_train(arguments: argparse.Namespace) -> None:
    draft = trainable(load_draft(arguments, arguments.start))
    training = Conversations.load(split(shards(arguments), arguments.held_out)[0])
    observed = load_held_out(arguments)
    head = load_target(arguments).lm_head.weight.detach()
    names = TrainSettings.__dataclass_fields__
    settings = TrainSettings(**{name: value for name, value in vars(arguments).items() if name in names})
    laws = {"alpha": DecodingSettings(), "alpha_greedy": DecodingSettings(temperature=0)}

    def observe(model: PreTrainedModel) -> dict[str, float]:
        found = agreement(model, head, observed, list(laws.values()))
        return {name: one.acceptance_rate for name, one in zip(laws, found, strict=True)}

    train(draft, training, settings, arguments.work / arguments.run, observe=observe)


def run_evaluate(arguments: argparse.Namespace) -> None:
    data = load_held_out(arguments)
    head = load_target(arguments).lm_head.weight.detach()
    for source in arguments.drafts:
        draft = load_draft(arguments, source)
        print(f"{source}: {len(data)} held-out conversations, {int((data.writers[:, 1:] == ANSWER).sum())} positions")
        for settings, found in zip(EVALUATED, agreement(draft, head, data, EVALUATED), strict=True):
            law = f"T={settings.temperature:g} top_k={settings.top_k} top_p={settings.top_p:g}"
            print(f"  {law:24} alpha {found.acceptance_rate:.4f}  within reach of the draft's head {found.reach:.4f}")


def run_cost(arguments: argparse.Namespace) -> None:
    models = [LanguageModel.load(source, device=arguments.device) for source in (arguments.target, arguments.draft)]
    for name, clock in {"wall clock": time.perf_counter, "processor time": time.process_time}.items():
        target, draft = pass_seconds(models, arguments.context, arguments.repeats, clock)
        print(f"{name}: target {1e3 * target:.1f} ms, draft {1e3 * draft:.1f} ms per pass, c = {draft / target:.3f}")


def run_lanes(arguments: argparse.Namespace) -> None:
    pair = ModelPair.load(arguments.target, arguments.draft, device=arguments.device)
    prompts = first_prompts(load_held_out(arguments), load_tokenizer(arguments))
    settings = DecodingSettings(temperature=arguments.temperature, max_new_tokens=arguments.tokens)
    for method in ("speculative", "mtad"):
        figures = run_lane(method, pair, prompts, settings)
        print(
            f"{method}: {figures.tokens_per_target_pass:.3f} tokens per target pass, "
            f"{figures.kept:.3f} of the drafted tokens kept, over {len(prompts)} prompts"
        )
    if arguments.alpha is not None:
        predicted = predicted_tokens_per_pass(arguments.alpha, settings.draft_length)
        print(f"predicted for speculative from alpha = {arguments.alpha:g}: {predicted:.3f} tokens per target pass")


def run_export(arguments: argparse.Namespace) -> None:
    draft = load_draft(arguments, arguments.start)
    state = torch.load(
        checkpoint_path(arguments.work / arguments.run), weights_only=True, map_location=arguments.device
    )
    set_own_weights(draft, state["student"])
    export(draft, load_tokenizer(arguments), arguments.target, arguments.folder)
    print(f"{arguments.folder}: weights after {state['done']} steps")


def run_plot(arguments: argparse.Namespace) -> None:
    plot_curve(read_logs([arguments.work / run for run in arguments.runs]), arguments.file)


if __name__ == "__main__":
    main()
