"""What a rollout is made of: prompts in order, completions, rewards, advantages."""
