"""Estimates, intervals, tests and votes."""
