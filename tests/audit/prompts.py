"""The prompts of the audit, and settings that vary with them."""

from typing import Any

PROMPTS = (
    "Explain in two sentences why the sky is blue.",
    "Write a short poem about the sea at night.",
    "Answer only with emoji: happy birthday! 🎂🎉🥳",
    "把下面的句子翻译成英文：我喜欢在早上喝茶。",
    "Write a Python function that returns the n-th Fibonacci number.",
    "List five fruits, one per line, each with its colour.",
    "What is 17 * 23? Show your work.",
    "Tell me a joke about a statistician.",
    "Summarise: The quick brown fox jumps over the lazy dog. The dog does not react.",
    "日本語で自己紹介をしてください。",
    "Continue the sequence: 1, 1, 2, 3, 5, 8,",
    "Give me a recipe for pancakes as a numbered list.",
    "한국의 수도는 어디입니까?",
    "Write a JSON object with the keys name, age and city.",
    "Who wrote Romeo and Juliet, and when?",
    "Repeat the word 'buffalo' as often as you like.",
    "Translate to French: Where is the nearest train station?",
    "Make a table\twith tabs\tof three planets\tand their moons.",
    "Why do cats purr? 🐈",
    "Hi",
)

VARIATIONS: tuple[dict[str, Any], ...] = (
    {},
    {"temperature": 0.7, "top_p": 1.0},
    {"temperature": 0.0},
    {"top_k": 0, "top_p": 1.0},
    {"draft_search": "search", "draft_length": 3},
    {"temperature": 1.3, "top_k": 50, "top_p": 0.95, "threshold": 0.1, "tree_verification": True},
    {"draft_length": 6, "beam_width": 2},
    {"draft_length": 1},
    {"beam_width": 1, "threshold": 1.0},
    {"chat": False, "draft_length": 2, "beam_width": 6, "tree_verification": True},
)


def settings_for(prompt: int) -> dict[str, Any]:
    """Settings to run a prompt with, so that all of them are covered by two prompts each."""
    return VARIATIONS[prompt % len(VARIATIONS)]
