"""Reads `spider_registry.json`: what can be registered, and every fault with file, line and reason."""

from apps.spiders.registry.reading import FILE_NAME, Entry, Fault, Reading, read_registry

__all__ = ["FILE_NAME", "Entry", "Fault", "Reading", "read_registry"]
