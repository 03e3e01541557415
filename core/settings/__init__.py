"""The settings of a run: their sources, bounds and refusals, and the key of a training."""
