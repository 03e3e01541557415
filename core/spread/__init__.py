"""Runs spread over processes, machines and jobs of a queue; checkpoints they resume from."""
