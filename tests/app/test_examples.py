"""The example prompts fit the default pair and settings."""

from app.examples import example_prompts


def test_titles_and_prompts_are_there():
    prompts = example_prompts()
    assert 6 <= len(prompts) <= 8
    assert all(title.strip() and 10 < len(prompt) < 1000 for title, prompt in prompts.items())
