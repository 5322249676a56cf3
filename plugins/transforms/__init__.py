"""Transforms of the values."""
