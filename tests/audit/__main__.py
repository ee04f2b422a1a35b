"""The full audit: 20 prompts × 4 methods × 3 seeds on the real pair. `python -m tests.audit`; exits 1 on any failure."""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor
from tqdm import tqdm

from decoding.decode import decode
from decoding.pair import ModelPair
from decoding.settings import DecodingSettings
from decoding.trace import Trace
from tests.audit.audit import Ledger, audit
from tests.audit.packed import packed_laws
from tests.audit.plain import Text, plain_laws
from tests.audit.prompts import PROMPTS, settings_for

METHODS = ("single_token", "speculative", "mtad", "mtjd", "typical")


@dataclass
class Totals:
    """What has been audited so far."""

    traces: int = 0
    tokens: int = 0
    failed: int = 0
    numbers: int = 0
    facts: int = 0
    ambiguous: int = 0
    largest: float = 0.0
    where: str = "nowhere"

    def add(self, name: str, trace: Trace, ledger: Ledger) -> None:
        self.traces += 1
        self.tokens += len(trace.result.token_ids)
        self.failed += bool(ledger.failures)
        self.numbers += ledger.numbers
        self.facts += ledger.facts
        self.ambiguous += ledger.ambiguous
        if ledger.largest > self.largest:
            self.largest, self.where = ledger.largest, f"{name}: {ledger.largest_where}"

    def __str__(self) -> str:
        return (
            f"{self.traces} traces, {self.tokens:,} tokens, {self.failed} traces with failures\n"
            f"{self.numbers:,} numbers recomputed, largest deviation {self.largest:.2e} ({self.where})\n"
            f"{self.facts:,} rules applied again; {self.ambiguous} laws whose cut fell between near equals"
        )


def main() -> int:
    options = _parser().parse_args()
    pair = ModelPair.load(options.target, options.draft, device="cpu")
    assert pair.draft is not None
    totals = Totals()
    runs = list(product(range(options.first_seed, options.first_seed + options.seeds), range(options.prompts), METHODS))
    try:
        for seed, index, method in tqdm(runs, desc="Audit", unit="trace"):
            settings = DecodingSettings(**settings_for(index), seed=seed, max_new_tokens=options.tokens)
            trace = decode(method, pair, PROMPTS[index], settings)
            laws_of = plain_laws if options.plain else compared_laws
            ledger = audit(trace, pair.target.model, pair.draft.model, pair.target.eos_ids, laws_of)
            name = f"{method}, seed {seed}, prompt {index}"
            totals.add(name, trace, ledger)
            for failure in ledger.failures[:5]:
                tqdm.write(f"FAILED  {name}: {failure}")
    except KeyboardInterrupt:
        print(f"Stopped: {totals.traces} of {len(runs)} traces audited.")
    print(totals)
    return 1 if totals.failed or totals.traces < len(runs) else 0


def compared_laws(model: torch.nn.Module, texts: Iterable[Text]) -> dict[Text, Tensor]:
    """Packed laws, after a look at whether the longest and the last drafted text have the same law in a plain pass.

    Raises:
        AssertionError: they have not.
    """
    laws = packed_laws(model, texts)
    longest = list(laws)[-2:]
    for text, law in plain_laws(model, longest).items():
        torch.testing.assert_close(laws[text].exp(), law.exp(), atol=1e-4, rtol=0)
    return laws


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.audit", description=__doc__)
    parser.add_argument("--target", default="SmolLM2-135M-Instruct")
    parser.add_argument("--draft", default="SmolLM2-aligned-draft")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--prompts", type=int, default=len(PROMPTS))
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--plain", action="store_true", help="one pass per text instead of packed ones: hours")
    return parser


if __name__ == "__main__":
    sys.exit(main())
