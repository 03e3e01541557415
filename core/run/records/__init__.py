"""Records of runs: written, read, checked and judged."""
