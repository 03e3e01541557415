"""Evaluation outside of training runs: `repro eval` and `repro score`."""
