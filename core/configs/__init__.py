"""Settings of trainers with TRL 1.16's names, defaults and checks."""
