"""Benchmarks of speed and memory, measured side by side with the peer in one run."""
