"""Trainers on the outputs of models: of the trained one itself, or of a teacher."""
