"""Benchmarks: their problems, how they are asked, and what training data holds of them."""
