"""Runs spread over processes, machines and jobs of a queue."""
