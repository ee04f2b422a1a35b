"""The full audit: 20 prompts × 3 methods × 3 seeds on the real pair. `python -m tests.audit`; exits 1 on any failure."""

import argparse
import sys
from dataclasses import dataclass
from itertools import product

from tqdm import tqdm

from decoding.decode import decode
from decoding.pair import ModelPair
from decoding.settings import DecodingSettings
from decoding.trace import Trace
from tests.audit.audit import Ledger, audit
from tests.audit.prompts import PROMPTS, settings_for

METHODS = ("single_token", "speculative", "mtad")


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
    runs = list(product(range(options.seeds), range(options.prompts), METHODS))
    try:
        for seed, index, method in tqdm(runs, desc="Audit", unit="trace"):
            settings = DecodingSettings(**settings_for(index), seed=seed, max_new_tokens=options.tokens)
            trace = decode(method, pair, PROMPTS[index], settings)
            ledger = audit(trace, pair.target.model, pair.draft.model, pair.target.eos_ids)
            name = f"{method}, seed {seed}, prompt {index}"
            totals.add(name, trace, ledger)
            for failure in ledger.failures[:5]:
                tqdm.write(f"FAILED  {name}: {failure}")
    except KeyboardInterrupt:
        print(f"Stopped: {totals.traces} of {len(runs)} traces audited.")
    print(totals)
    return 1 if totals.failed or totals.traces < len(runs) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.audit", description=__doc__)
    parser.add_argument("--target", default="SmolLM2-135M-Instruct")
    parser.add_argument("--draft", default="SmolLM2-aligned-draft")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--prompts", type=int, default=len(PROMPTS))
    parser.add_argument("--tokens", type=int, default=64)
    return parser


if __name__ == "__main__":
    sys.exit(main())
