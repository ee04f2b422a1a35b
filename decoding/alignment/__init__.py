"""Direct alignment: a small draft model learns the law of its target from text that the target wrote.

Goel et al. 2024, "Direct Alignment of Draft Model for Speculative Decoding with Chat-Fine-Tuned LLMs", arXiv 2403.00858.
`python -m decoding.alignment --help` lists the steps.
"""
