"""Families of methods: their config and trainer, and their settings at each scale."""
