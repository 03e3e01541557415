"""Default engine: a decoding loop of its own, which reads each distinct prompt once."""
