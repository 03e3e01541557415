"""Our benchmarks as lm-eval tasks; pass this folder to `lm_eval --include_path`."""
