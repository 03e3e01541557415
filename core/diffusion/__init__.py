"""Discrete diffusion with uniform noise: noise, trainer, and sampling by the reverse process."""
