"""Training data: its sources, its datasets by name, and its conversion to token ids."""
