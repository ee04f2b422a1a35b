"""The bench: methods, peers and baselines on the same prompts, in turn, on the same machine.

`python -m decoding bench` runs it; `record.py` says what is written down of each run, `table.py` what is made of it.
"""
