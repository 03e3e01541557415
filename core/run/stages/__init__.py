"""The stages of a run: each with its key and its work."""
