"""The default engine: its own decoding loop, with prompts that are read once."""
