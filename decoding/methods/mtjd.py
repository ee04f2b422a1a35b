"""MTJD, multi-token joint decoding, exactly: each step writes a block taken by its joint probability under the target.

Qin et al., ICLR 2025, "Optimized Multi-Token Joint Decoding with Auxiliary Model for LLM Inference", whose MTAD approximates
it with a draft. Here the blocks are searched for on the target itself, which takes many passes: the price that MTAD avoids.
"""

from collections.abc import Iterator

import torch

from decoding.methods.best_first import Block, Found, Path, best_blocks
from decoding.methods.choices import record_choices
from decoding.methods.searched import SearchedTree
from decoding.run import Run
from decoding.trace import BlockSearch, Draft, Emitted, Node, Step


def mtjd(run: Run) -> Iterator[Step]:
    """Find the m most probable blocks of γ tokens and draw one, by their renormalised joint law (joint top-m sampling).

    At temperature 0 the most probable block under the unwarped target is written (multi-token joint greedy decoding). A
    search that has used its budget goes by the best blocks it found; the step says how good they are at worst.
    """
    run.prefill(run.target)
    while not run.finish_reason:
        run.start_step()
        tree = SearchedTree(run.target, run.pending(run.target), run.warp if run.settings.temperature else _unwarped)
        found = _search(run, tree)
        joint_law = torch.tensor([block.log_p for block in found.blocks], dtype=torch.float64)
        block = found.blocks[run.streams.target.draw(joint_law)]
        log_p = tree.law_before_each(block.path)
        emitted = [
            Emitted(token=token, origin="sampled", log_p=float(log_p[i, token])) for i, token in enumerate(block.path)
        ]
        tree.keep(block.path)
        draft, search = _as_draft(tree, found, block)
        choices = record_choices(block.path, log_p, run.warp(log_p))
        yield run.finish_step(emitted, choices, draft, search=search)


def _unwarped(log_laws: torch.Tensor) -> torch.Tensor:
    return log_laws


def _search(run: Run, tree: SearchedTree) -> Found:
    return best_blocks(
        tree.laws_after,
        length=run.settings.draft_length,
        count=run.settings.best_blocks if run.settings.temperature else 1,
        eos_ids=run.eos_ids,
        budget=run.settings.search_budget,
    )


def _as_draft(tree: SearchedTree, found: Found, chosen: Block) -> tuple[Draft, BlockSearch]:
    """Every prefix scored and every block found, as a tree whose law is the target's own; alive is what leads to a block."""
    paths = list(dict.fromkeys([*found.scored[1:], *(block.path for block in found.blocks)]))
    index = {path: i for i, path in enumerate(paths)}
    alive = {block.path[:end] for block in found.blocks for end in range(1, len(block.path) + 1)}
    joint: dict[Path, float] = {(): 0.0}
    nodes = []
    for path in paths:
        log_p = tree.searched_log(path)
        joint[path] = joint[path[:-1]] + log_p
        nodes.append(
            Node(
                parent=index.get(path[:-1]),
                depth=len(path),
                token=path[-1],
                log_q=log_p,
                joint_log_q=joint[path],
                scored=True,
                log_p=log_p,
                joint_log_p=joint[path],
                alive=path in alive,
            )
        )
    draft = Draft(nodes=tuple(nodes), chosen=tuple(index[chosen.path[:end]] for end in range(1, len(chosen.path) + 1)))
    search = BlockSearch(
        blocks=tuple(index[block.path] for block in found.blocks),
        proven=found.proven,
        bound=found.bound,
        evaluations=len(found.scored),
    )
    return draft, search
