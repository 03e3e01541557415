"""vLLM as an engine: on a server, or in the training process."""
