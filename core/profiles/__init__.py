"""Profiles of algorithms: small experiments that each isolate one capability, with intervals."""
