"""Trainers of models that score: rewards of texts, and labels of the steps of solutions."""
