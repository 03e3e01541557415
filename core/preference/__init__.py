"""Trainers of preferences between two answers."""
