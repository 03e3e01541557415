"""Answers of a model: asked for, graded, kept."""
