"""Rollout engines, which turn prompts into completions."""
