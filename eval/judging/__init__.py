"""Judges of two answers to the same prompt."""
