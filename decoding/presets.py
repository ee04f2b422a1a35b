"""Pairs of models that are known to fit together, as data."""

from dataclasses import dataclass

from decoding.weights import PACKAGED_TARGET, SHIPPED_DRAFT


@dataclass(frozen=True)
class Preset:
    """A pair to choose by name.

    Attributes:
        target, draft: sources, see `decoding.weights`.
        licence: of the weights, which are fetched from their makers and are not part of this project.
        memory_gb: for both models and their caches in half precision; in float32, as on a CPU, about twice as much.
        gated: whether the licence must be accepted on the Hub first (then a token is needed: HF_TOKEN or `hf auth login`).
        note: what the pair is good for.
    """

    title: str
    target: str
    draft: str
    licence: str
    memory_gb: float
    gated: bool = False
    note: str = ""


DEFAULT_PRESET = "smollm2-135m"

PRESETS = {
    DEFAULT_PRESET: Preset(
        title="SmolLM2-135M ⟵ aligned draft",
        target=PACKAGED_TARGET,
        draft=SHIPPED_DRAFT,
        licence="Apache-2.0",
        memory_gb=0.5,
        note="Runs on two CPU cores without any account or download from the Hub.",
    ),
    "smollm2-1.7b": Preset(
        title="SmolLM2-1.7B ⟵ SmolLM2-135M",
        target="HuggingFaceTB/SmolLM2-1.7B-Instruct",
        draft="HuggingFaceTB/SmolLM2-135M-Instruct",
        licence="Apache-2.0",
        memory_gb=4.5,
        note="A small pair that still gains from drafting.",
    ),
    "qwen2.5-7b": Preset(
        title="Qwen2.5-7B ⟵ Qwen2.5-0.5B",
        target="Qwen/Qwen2.5-7B-Instruct",
        draft="Qwen/Qwen2.5-0.5B-Instruct",
        licence="Apache-2.0",
        memory_gb=18,
        note="The heads of the two are padded to different lengths.",
    ),
    "llama-3.1-8b": Preset(
        title="Llama-3.1-8B ⟵ Llama-3.2-1B",
        target="meta-llama/Llama-3.1-8B-Instruct",
        draft="meta-llama/Llama-3.2-1B-Instruct",
        licence="Llama 3.1 and Llama 3.2 Community Licence",
        memory_gb=21,
        gated=True,
    ),
    "opt-13b": Preset(
        title="OPT-13B ⟵ OPT-125M",
        target="facebook/opt-13b",
        draft="facebook/opt-125m",
        licence="OPT licence (research only)",
        memory_gb=29,
        note="A pair of the MTAD paper.",
    ),
    "gpt2-xl": Preset(
        title="GPT-2 XL ⟵ DistilGPT-2",
        target="openai-community/gpt2-xl",
        draft="distilbert/distilgpt2",
        licence="MIT and Apache-2.0",
        memory_gb=4,
        note="Base models: they continue a text rather than answer.",
    ),
}
