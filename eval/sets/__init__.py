"""Benchmarks: their problems and prompts, and the search for test questions in training data."""
