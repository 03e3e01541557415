"""Settings of a run: resolved from paper, profile, arm and overrides."""
