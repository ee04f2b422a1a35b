"""The rules once more, in plain Python lists and probabilities: slow, obvious, and sharing nothing with `decoding/`.

Laws are lists of probabilities; a model is a function from a text (a tuple) to one.
"""

import math
from collections.abc import Callable
from itertools import permutations

Law = list[float]
Model = Callable[[tuple[int, ...]], Law]
Pick = Callable[[list[float]], int]


def warp(law: Law, temperature: float, top_k: int, top_p: float) -> Law:
    """Temperature, then the k largest (equals of the k-th stay), then the fewest whose mass reaches top_p; normalised."""
    if temperature == 0:
        return [1.0 if i == law.index(max(law)) else 0.0 for i in range(len(law))]
    law = normalised([p ** (1 / temperature) for p in law])
    if top_k and top_k < len(law):
        least = sorted(law, reverse=True)[top_k - 1]
        law = normalised([p if p >= least else 0.0 for p in law])
    if top_p < 1:
        mass, kept = 0.0, set()
        for i in sorted(range(len(law)), key=lambda i: -law[i]):
            if mass < top_p:
                kept.add(i)
            mass += law[i]
        law = normalised([p if i in kept else 0.0 for i, p in enumerate(law)])
    return law


def normalised(weights: list[float]) -> Law:
    return [weight / math.fsum(weights) for weight in weights]


def warped(model: Model, settings) -> Model:
    """A model whose laws are warped by `settings`."""
    return lambda text: warp(list(model(text)), settings.temperature, settings.top_k, settings.top_p)


def chain_rule(model: Model, prompt, length: int, eos=frozenset()) -> dict[tuple[int, ...], float]:
    """The law of texts of up to `length` tokens, each token drawn from the model."""
    laws = {(): 1.0}
    for _ in range(length):
        longer = {}
        for text, weight in laws.items():
            if len(text) and text[-1] in eos:
                longer[text] = weight
            else:
                longer |= {(*text, t): weight * p for t, p in enumerate(model((*prompt, *text))) if p > 0}
        laws = longer
    return laws


def distinct_draws(weights: list[float], count: int) -> dict[tuple[int, ...], float]:
    """The law of ordered draws without replacement."""
    support = [i for i, weight in enumerate(weights) if weight > 0]
    laws = {}
    for order in permutations(support, min(count, len(support))):
        steps = [
            weights[i] / math.fsum(w for j, w in enumerate(weights) if j not in order[:n]) for n, i in enumerate(order)
        ]
        laws[order] = math.prod(steps)
    return laws


def draw_without_replacement(weights: list[float], count: int, pick: Pick) -> list[int]:
    left, drawn = list(weights), []
    while len(drawn) < count and any(left):
        index = pick(left)
        drawn.append(index)
        left[index] = 0.0
    return drawn


def largest(weights: list[float], count: int) -> list[int]:
    return [i for i in sorted(range(len(weights)), key=lambda i: -weights[i]) if weights[i] > 0][:count]


def beam_pool(beams, model: Model, text, eos):
    """The pool of one depth: (path, joint Q, weight), continuations of open beams first, then finished beams as they are.

    `beams` is a list of (path, joint Q, weight).
    """
    is_open = [not (path and path[-1] in eos) for path, _, _ in beams]
    pool = []
    for (path, joint, weight), goes_on in zip(beams, is_open, strict=True):
        if goes_on:
            law = model((*text, *path))
            pool += [((*path, v), joint * law[v], weight * law[v]) for v in range(len(law))]
    pool += [beam for beam, goes_on in zip(beams, is_open, strict=True) if not goes_on]
    return pool


def draft_beams(model: Model, text, length: int, width: int, eos, select) -> list:
    """Beams (path, joint Q, weight) after `length` depths; `select(weights, count)` gives indices into the pool."""
    return draft_tree(model, text, length, width, eos, select)[0]


def draft_tree(model: Model, text, length: int, width: int, eos, select) -> tuple[list, set[tuple[int, ...]]]:
    """The same, and every path that was a beam at any depth."""
    beams, nodes = [((), 1.0, 1.0)], set()
    for _ in range(length):
        if all(path and path[-1] in eos for path, _, _ in beams):
            break
        pool = beam_pool(beams, model, text, eos)
        chosen = [pool[i] for i in select([weight for _, _, weight in pool], width)]
        total = math.fsum(weight for _, _, weight in chosen)
        beams = [(path, joint, weight / total) for path, joint, weight in chosen]
        nodes |= {path for path, _, _ in beams}
    return beams, nodes


def mtad_verdict(p: Model, q: Model, text, block, threshold: float) -> tuple[list[float], list[float], int]:
    """Joint probabilities P_1..P_γ and Q_1..Q_γ of the block's prefixes, and η, how many tokens are kept."""
    joint_p, joint_q = [], []
    for j in range(1, len(block) + 1):
        joint_p.append(math.prod(p((*text, *block[:i]))[block[i]] for i in range(j)))
        joint_q.append(math.prod(q((*text, *block[:i]))[block[i]] for i in range(j)))
    kept = 0
    for j in range(1, len(block) + 1):
        if joint_p[j - 1] / joint_q[j - 1] > threshold:
            kept = j
    return joint_p, joint_q, kept


def joint(model: Model, text, path) -> float:
    """The probability of a path after a text."""
    return math.prod(model((*text, *path[:i]))[path[i]] for i in range(len(path)))


def tree_kept(p: Model, q: Model, text, nodes, threshold: float) -> tuple[int, ...]:
    """The path that tree verification keeps: at the deepest depth where any passes, the passing one of largest P."""
    for depth in sorted({len(path) for path in nodes}, reverse=True):
        here = sorted(path for path in nodes if len(path) == depth)
        largest = max(joint(q, text, path) for path in here)
        passing = [path for path in here if joint(p, text, path) / largest > threshold]
        if passing:
            return max(passing, key=lambda path: joint(p, text, path))
    return ()


def top_blocks(p: Model, text, length: int, eos, count: int) -> dict[tuple[int, ...], float]:
    """The most probable blocks after a text and their renormalised law, by enumeration of all."""
    laws = sorted(chain_rule(p, text, length, eos).items(), key=lambda item: (-item[1], item[0]))[:count]
    total = math.fsum(probability for _, probability in laws)
    return {block: probability / total for block, probability in laws}


def mtad_step_law(p: Model, q: Model, text, settings, eos=frozenset()) -> dict[tuple[int, ...], float]:
    """The exact law of what one step of MTAD with beam sampling emits, `p` and `q` being warped; by full enumeration."""
    laws: dict[tuple[int, ...], float] = {}

    def go(beams, nodes, depth: int, weight: float) -> None:
        if depth == settings.draft_length or all(path and path[-1] in eos for path, _, _ in beams):
            block = max(beams, key=lambda beam: beam[1])[0]
            kept = mtad_verdict(p, q, text, block, settings.threshold)[2]
            if settings.tree_verification:
                block = tree_kept(p, q, text, nodes, settings.threshold)
                kept = len(block)
            if kept and block[kept - 1] in eos:
                laws[block[:kept]] = laws.get(block[:kept], 0.0) + weight
                return
            for token, probability in enumerate(p((*text, *block[:kept]))):
                if probability:
                    emitted = (*block[:kept], token)
                    laws[emitted] = laws.get(emitted, 0.0) + weight * probability
            return
        pool = beam_pool(beams, q, text, eos)
        for order, probability in distinct_draws([w for _, _, w in pool], settings.beam_width).items():
            total = math.fsum(pool[i][2] for i in order)
            grown = [(pool[i][0], pool[i][1], pool[i][2] / total) for i in order]
            go(grown, nodes | {path for path, _, _ in grown}, depth + 1, weight * probability)

    go([((), 1.0, 1.0)], frozenset(), 0, 1.0)
    return laws
