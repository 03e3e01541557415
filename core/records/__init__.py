"""Records of runs: their schema, files, digests and index."""
