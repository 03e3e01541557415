"""Engines that run vLLM, on a server or in the training process."""
