"""Weights as they lie: spread over processes, beside adapters, or copied as the reference."""
