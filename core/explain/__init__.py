"""Explanations of a run in plain words: its batch plan, its health and its time."""
