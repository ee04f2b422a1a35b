"""Laws from plain forward passes, and a warp of its own: nothing here is shared with `decoding/`."""

from collections.abc import Iterable

import torch
from torch import Tensor

Text = tuple[int, ...]
BATCH_TOKENS = 4096  # of one forward pass, padding included
MASS = 5e-4  # how far rounding may move the mass that top-p counts
NEAR = 2e-3  # how close two logits may be for rounding to swap them


def plain_laws(model: torch.nn.Module, texts: Iterable[Text]) -> dict[Text, Tensor]:
    """The log-law after each text, (vocabulary,) float32, from passes without any cache.

    Texts that begin another one are read off its pass; the others are padded on the right and batched, which a causal
    model does not notice.
    """
    wanted = set(texts)
    covering: dict[Text, list[Text]] = {}
    for text in sorted(wanted, key=len, reverse=True):
        home = next((longer for longer in covering if longer[: len(text)] == text), text)
        covering.setdefault(home, []).append(text)
    laws: dict[Text, Tensor] = {}

    def span(home: Text) -> bool:
        return len(home) - min(map(len, covering[home])) > 20  # long ones apart: they need laws at every position

    for batch in _batches(sorted(covering, key=lambda home: (span(home), min(map(len, covering[home]))))):
        longest = max(map(len, batch))
        first = min(len(text) for home in batch for text in covering[home])
        ids = torch.tensor([[*text, *[0] * (longest - len(text))] for text in batch])
        with torch.inference_mode():
            logits = model(input_ids=ids, use_cache=False, logits_to_keep=longest - first + 1).logits.float()
        for row, home in enumerate(batch):
            for text in covering[home]:
                laws[text] = logits[row, len(text) - first].log_softmax(-1)
    return laws


def _batches(texts: list[Text]) -> Iterable[list[Text]]:
    batch: list[Text] = []
    for text in texts:
        if batch and max(map(len, [*batch, text])) * (len(batch) + 1) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def warped(log_law: Tensor, temperature: float, top_k: int, top_p: float) -> list[Tensor]:
    """The warped log-law, and after it those that rounding could turn it into where a cut falls between near equals.

    Temperature, then the k most probable tokens, then the fewest of these whose mass reaches top-p, then normalisation.
    Temperature 0 is the most probable token alone.
    """
    logits = log_law.double() / (temperature or 1.0)
    enough = min(top_k + 3, len(logits)) if top_k and temperature else len(logits)  # a sort of all takes long
    logits, ids = logits.topk(enough) if enough < len(logits) else logits.sort(descending=True, stable=True)
    if temperature == 0:
        ties = int((logits[0] - logits < NEAR).sum())
        return [_law_on(ids[i : i + 1], log_law) for i in range(ties)]
    k = top_k or len(logits)
    supports = [ids[:k]]
    near = [j for j in range(k, min(k + 3, len(logits))) if logits[k - 1] - logits[j] < NEAR]
    supports += [torch.cat([ids[: k - 1], ids[j : j + 1]]) for j in near]  # another token is the k-th
    nuclei = [kept for support in supports for kept in _nuclei(support, log_law, temperature, top_p)]
    return [_law_on(kept, log_law / temperature) for kept in nuclei]


def _nuclei(support: Tensor, log_law: Tensor, temperature: float, top_p: float) -> list[Tensor]:
    if top_p == 1:
        return [support]
    mass = (log_law[support].double() / temperature).softmax(-1).cumsum(-1)
    sizes = [int((mass < bound).sum()) + 1 for bound in (top_p, top_p - MASS, top_p + MASS)]
    nuclei = [support[:size] for size in dict.fromkeys(sizes)]
    size = sizes[0]
    if size < len(support) and log_law[support[size - 1]] - log_law[support[size]] < NEAR * temperature:
        nuclei.append(torch.cat([support[: size - 1], support[size : size + 1]]))  # another token crosses
    return nuclei


def _law_on(support: Tensor, logits: Tensor) -> Tensor:
    law = torch.full_like(logits, -torch.inf, dtype=torch.float64)
    law[support] = logits[support].double()
    return law.log_softmax(-1)
