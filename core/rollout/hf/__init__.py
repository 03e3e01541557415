"""Engines that run transformers' own generation loops."""
