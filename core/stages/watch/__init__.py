"""Callbacks and progress displays of a running training."""
