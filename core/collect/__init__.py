"""Collection of rollouts: order of prompts, completions, rewards, corrections and metrics."""
