"""Placement of weights: spread over processes, beside adapters, or copied as the reference."""
