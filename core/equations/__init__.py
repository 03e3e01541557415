"""Losses, advantages and weights beside the equations of their papers in plain numbers."""
