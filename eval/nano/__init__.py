"""Nano worlds: generators of tiny problems in which mechanisms of policy gradients act."""

# Part of the keys of all that is made from the problems: to be raised when a problem, an answer or
# a demonstration changes.
NANO_VERSION = "2"
