"""Data: conversations that the target writes by itself, with what its law at every position follows from.

The target continues the start of its own chat template, so it writes the user's turns as well as its answers. Of each position
the last hidden state is kept in half precision: one product with the head gives the full law from it, in less space than
a few hundred log-probabilities would take.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

from decoding.alignment.support import warp_support
from decoding.settings import DecodingSettings

FORCED, USER, ANSWER = 0, 1, 2
"""Who wrote a token: the chat template, the target as the user, the target as the assistant."""

USER_SETTINGS = DecodingSettings(temperature=1, top_k=100, top_p=0.95)
ANSWER_SETTINGS = (
    DecodingSettings(),  # the app's own defaults
    DecodingSettings(temperature=1, top_k=0, top_p=1),
    DecodingSettings(temperature=0.6, top_k=0, top_p=1),
    DecodingSettings(temperature=0),
)
USER_GROUP = -1
ANSWER_SHARES = (0.6, 0.15, 0.15, 0.1)
LONGEST_USER_TURN = 64
LEAST_DISTINCT = 0.5
"""Conversations that repeat themselves more than this are left out."""


@dataclass(frozen=True)
class ChatTokens:
    """Token ids of the chat template around what the target writes."""

    start: list[int]
    to_answer: list[int]
    to_user: list[int]
    end: int
    specials: list[int]

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase) -> "ChatTokens":
        """Read the template off two conversations whose contents are known."""
        text = tokenizer.apply_chat_template(
            [{"role": role, "content": "\0"} for role in ("user", "assistant", "user")],
            tokenize=False,
            add_generation_prompt=True,
        )
        start, to_answer, to_user, _ = text.split("\0")
        end = tokenizer.eos_token

        def ids(part: str) -> list[int]:
            return tokenizer.encode(part.removeprefix(end), add_special_tokens=False)

        return cls(ids(start), ids(to_answer), ids(to_user), tokenizer.eos_token_id, tokenizer.all_special_ids)


class PreallocatedLayer(DynamicLayer):
    """A cache layer of known capacity: it writes in place where DynamicLayer copies all it holds at every step."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        rows, heads, _, width = key_states.shape
        self.buffers = key_states.new_empty(2, rows, heads, self.capacity, width)
        self.keys, self.values = self.buffers[:, :, :, :0]
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        old = self.keys.shape[-2]
        new = old + key_states.shape[-2]
        self.buffers[0, :, :, old:new] = key_states
        self.buffers[1, :, :, old:new] = value_states
        self.keys, self.values = self.buffers[:, :, :, :new]
        return self.keys, self.values


@dataclass
class Turn:
    """Where one conversation stands: who writes, how many tokens so far, and template tokens still to come."""

    writer: int
    written: int
    forced: list[int]


@torch.inference_mode()
def write_conversations(
    model: PreTrainedModel, chat: ChatTokens, answer_settings: Sequence[int], length: int, generator: torch.Generator
) -> dict[str, Tensor]:
    """Let the target write conversations, one a row.

    Args:
        answer_settings: index into ANSWER_SETTINGS, one a row.
        length: tokens of each row, template included.

    Returns:
        tokens (rows, length) int32; writers (rows, length) uint8, who wrote each token; hidden (rows, length − 1, width)
        float16, the target's last hidden state at each token but the last; log_normaliser (rows, length − 1) float32, log of the
        sum of exponentiated logits there; answer_settings (rows,) int32.
    """
    rows = len(answer_settings)
    tokens = torch.zeros(rows, length, dtype=torch.long)
    tokens[:, : len(chat.start)] = torch.tensor(chat.start)
    writers = torch.full((rows, length), FORCED, dtype=torch.uint8)
    hidden = torch.empty(rows, length - 1, model.config.hidden_size, dtype=torch.float16)
    log_normaliser = torch.empty(rows, length - 1)
    turns = [Turn(USER, 0, []) for _ in range(rows)]
    cache = Cache(layers=[PreallocatedLayer(length) for _ in range(model.config.num_hidden_layers)])
    fed = len(chat.start) - 1
    states = _prefill(model, tokens[0, :fed], cache, rows)
    hidden[:, :fed] = states.half().cpu()
    log_normaliser[:, :fed] = model.lm_head(states).float().logsumexp(-1).cpu()
    for end in range(len(chat.start), length):
        states = model.model(tokens[:, fed:end].to(model.device), cache=cache, use_cache=True).last_hidden_state
        logits = model.lm_head(states).float()
        hidden[:, fed:end] = states.half().cpu()
        normaliser = logits.logsumexp(-1)
        log_normaliser[:, fed:end] = normaliser.cpu()
        sampled = _sample(logits[:, -1] - normaliser, turns, answer_settings, chat, generator)
        for row, turn in enumerate(turns):
            tokens[row, end], writers[row, end] = _advance(turn, sampled[row], chat)
        fed = end
    return {
        "tokens": tokens.int(),
        "writers": writers,
        "hidden": hidden,
        "log_normaliser": log_normaliser,
        "answer_settings": torch.tensor(answer_settings, dtype=torch.int32),
    }


def _prefill(model: PreTrainedModel, start: Tensor, cache: Cache, rows: int) -> Tensor:
    """Feed the start that all rows share once, fill every row's cache with it and return its hidden states, (1, start, width)."""
    once = DynamicCache()
    states = model.model(start[None].to(model.device), cache=once, use_cache=True).last_hidden_state
    for layer, filled in zip(cache.layers, once.layers, strict=True):
        layer.update(filled.keys.expand(rows, -1, -1, -1), filled.values.expand(rows, -1, -1, -1))
    return states


def _sample(
    log_laws: Tensor, turns: list[Turn], answer_settings: Sequence[int], chat: ChatTokens, generator: torch.Generator
) -> list[int]:
    """One token a row from (rows, vocabulary) log-laws, each warped as its writer asks; no turn is left empty."""
    for row, turn in enumerate(turns):
        if turn.written == 0:
            log_laws[row, chat.specials] = -torch.inf
    heights = torch.rand(len(turns), 1, generator=generator)
    sampled = torch.empty(len(turns), 1, dtype=torch.long)
    groups: dict[int, list[int]] = {}
    for row, turn in enumerate(turns):
        groups.setdefault(USER_GROUP if turn.writer == USER else answer_settings[row], []).append(row)
    for group, members in groups.items():
        settings = USER_SETTINGS if group == USER_GROUP else ANSWER_SETTINGS[group]
        sampled[members] = _draw(log_laws[members], settings, heights[members].to(log_laws.device)).cpu()
    return sampled.squeeze(-1).tolist()


def _draw(log_laws: Tensor, settings: DecodingSettings, heights: Tensor) -> Tensor:
    """The tokens (rows, 1) at which the cumulated warped laws reach `heights`, (rows, 1) in [0, 1)."""
    warped, ids = warp_support(log_laws, settings)
    cumulated = warped.exp().cumsum(-1)
    places = torch.searchsorted(cumulated, heights * cumulated[:, -1:], right=True)
    return ids.gather(-1, places.clamp(max=ids.shape[-1] - 1))


def _advance(turn: Turn, sampled: int, chat: ChatTokens) -> tuple[int, int]:
    """The row's next token and its writer; `turn` moves on."""
    if turn.forced:
        return turn.forced.pop(0), FORCED
    writer = turn.writer
    cut = writer == USER and turn.written == LONGEST_USER_TURN
    if sampled in chat.specials or cut:
        answers_next = writer == USER
        turn.writer, turn.written = (ANSWER if answers_next else USER), 0
        turn.forced = list(chat.to_answer if answers_next else chat.to_user)
        return chat.end, FORCED if cut else writer
    turn.written += 1
    return sampled, writer


def shard_path(folder: Path, index: int) -> Path:
    return folder / f"shard-{index:05d}.safetensors"


def write_shard(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    index: int,
    *,
    rows: int,
    length: int,
    seed: int,
) -> None:
    """Write one shard, a function of the seed and its index alone; a file of that name is always whole."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + index)
    shares = torch.tensor(ANSWER_SHARES)
    answer_settings = torch.multinomial(shares, rows, replacement=True, generator=generator).tolist()
    shard = write_conversations(model, ChatTokens.of(tokenizer), answer_settings, length, generator)
    partial = shard_path(folder, index).with_suffix(".part")
    save_file(shard, partial)
    partial.rename(shard_path(folder, index))


def write_shards(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    *,
    shards: int,
    rows: int,
    length: int,
    seed: int,
) -> None:
    """Write the shards that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in tqdm(range(shards), desc=f"shards of {rows} × {length} tokens"):
        if not shard_path(folder, index).is_file():
            write_shard(model, tokenizer, folder, index, rows=rows, length=length, seed=seed)


@dataclass(frozen=True)
class Conversations:
    """Stored conversations; shapes and units as `write_conversations` gives them."""

    tokens: Tensor
    writers: Tensor
    hidden: Tensor
    log_normaliser: Tensor
    answer_settings: Tensor

    @classmethod
    def load(cls, shards: Sequence[Path]) -> "Conversations":
        """All conversations of these shards but the degenerate ones."""
        parts = [load_file(path) for path in shards]
        every = cls(**{name: torch.cat([part[name] for part in parts]) for name in parts[0]})
        return every.select(distinct_share(every.tokens, every.writers) >= LEAST_DISTINCT)

    def __len__(self) -> int:
        return len(self.tokens)

    def select(self, rows: Tensor) -> "Conversations":
        """The conversations at these places, by index or by mask."""
        return Conversations(*(getattr(self, field.name)[rows] for field in fields(self)))

    def to(self, device: torch.device | str) -> "Conversations":
        return Conversations(*(getattr(self, field.name).to(device) for field in fields(self)))


def distinct_share(tokens: Tensor, writers: Tensor, n: int = 4) -> Tensor:
    """(rows,) distinct n-grams over all n-grams of what the target wrote; 1 where nothing repeats, near 0 in a loop."""
    shares = []
    for row, by in zip(tokens.tolist(), writers.tolist(), strict=True):
        written = [token for token, writer in zip(row, by, strict=True) if writer != FORCED]
        grams = [tuple(written[at : at + n]) for at in range(len(written) - n + 1)]
        shares.append(len(set(grams)) / max(len(grams), 1))
    return torch.tensor(shares)


def split(folder: Path, held_out: Sequence[int]) -> tuple[list[Path], list[Path]]:
    """Shards to train on and shards to evaluate on: those of these numbers, which are never trained on."""
    kept_apart = [shard_path(folder, index) for index in held_out]
    return [path for path in sorted(folder.glob("shard-*.safetensors")) if path not in kept_apart], kept_apart
