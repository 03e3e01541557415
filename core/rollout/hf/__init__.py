"""Engines that are transformers' own loops."""
