"""Puts the parts of ClawPanel together; nothing imports it."""
