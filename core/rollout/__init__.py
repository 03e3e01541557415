"""Rollout engines, which turn prompts into completions, and the samplers built on them."""
