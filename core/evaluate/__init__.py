"""The eval stage alone: `repro eval` and `repro score`."""
