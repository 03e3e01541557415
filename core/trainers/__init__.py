"""Trainers with TRL's interface on top of `transformers.Trainer`."""
