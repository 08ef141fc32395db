"""The part of a worker that follows every run of its node."""
