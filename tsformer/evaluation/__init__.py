"""Metrics and the naive forecasts they are read against."""
