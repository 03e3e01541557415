"""Forward passes of a training: batches without waste, and log-probabilities of their tokens."""
