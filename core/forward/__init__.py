"""Forward passes of training: batches, packing, and log-probabilities of tokens."""
