"""Sampling, grading and storage of a model's answers."""
