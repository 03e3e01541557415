"""Stages of a run: each has a key, does its work once and stores it."""
