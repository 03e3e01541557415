"""Samplers that answer benchmark questions, with a model in this process or behind a server."""
