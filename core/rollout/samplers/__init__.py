"""What answers a benchmark: a model here, or one behind a server."""
