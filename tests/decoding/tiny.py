"""Tiny random models of every supported architecture, with a tokenizer of made-up words."""

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from decoding.language_model import LanguageModel, Weights
from decoding.pair import ModelPair

VOCABULARY = 60
WINDOW = 8  # of sliding attention: far shorter than the texts
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
}
WITH_GROUPS = SHAPE | {"intermediate_size": 48, "num_key_value_heads": 2}
GEMMA = WITH_GROUPS | {"head_dim": 8, "sliding_window": WINDOW, "query_pre_attn_scalar": 8}
CONFIGS = {
    "Llama": lambda: transformers.LlamaConfig(**WITH_GROUPS),
    "Qwen2": lambda: transformers.Qwen2Config(**WITH_GROUPS),
    "OPT": lambda: transformers.OPTConfig(**{**SHAPE, "init_std": 0.3, "ffn_dim": 48, "word_embed_proj_dim": 32}),
    "GPT-2": lambda: transformers.GPT2Config(
        vocab_size=VOCABULARY, n_embd=32, n_layer=3, n_head=4, n_positions=256, initializer_range=0.3
    ),
    "Gemma-3": lambda: transformers.Gemma3TextConfig(
        **GEMMA, layer_types=["sliding_attention", "full_attention", "sliding_attention"]
    ),
    "Mistral": lambda: transformers.MistralConfig(**WITH_GROUPS, sliding_window=WINDOW),
}


def tiny_model(architecture: str, seed: int = 0, **changes) -> PreTrainedModel:
    """A random model; `changes` are set on its configuration."""
    torch.manual_seed(seed)
    config = CONFIGS[architecture]()
    config.update(changes)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def cousin(model: PreTrainedModel, noise: float, seed: int = 1) -> PreTrainedModel:
    """A copy with noisy weights: it agrees with the original now and then."""
    torch.manual_seed(seed)
    copy = transformers.AutoModelForCausalLM.from_config(model.config).eval()
    copy.load_state_dict({name: w + noise * torch.randn_like(w) * w.std() for name, w in model.state_dict().items()})
    return copy


def tiny_tokenizer(size: int = VOCABULARY, **renamed: int) -> PreTrainedTokenizerFast:
    """Words w0, w1, …; `renamed` gives some ids another word."""
    words = {f"w{i}": i for i in range(size) if i not in renamed.values()} | renamed
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def tiny_pair(architecture: str, noise: float = 0.1, seed: int = 0) -> ModelPair:
    """A target and a cousin of it as its draft."""
    target = tiny_model(architecture, seed)
    return ModelPair.of(
        *(as_language_model(model, name) for model, name in ((target, "tiny"), (cousin(target, noise), "cousin")))
    )


def as_language_model(model: PreTrainedModel, source: str = "tiny", tokenizer_size: int = VOCABULARY) -> LanguageModel:
    size = min(tokenizer_size, model.config.vocab_size)
    return LanguageModel(model, tiny_tokenizer(tokenizer_size), source, size, Weights.of(model))


PROMPT = " ".join(f"w{i}" for i in (3, 1, 4, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 38))
