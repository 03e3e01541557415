"""lm-eval integration: our sampler as an lm-eval model, and lm-eval tasks as our scores."""
