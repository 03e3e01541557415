"""Statistics of graded samples: estimates, intervals, significance tests and majority votes."""
