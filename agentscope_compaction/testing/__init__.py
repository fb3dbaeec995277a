"""Helpers for tests of code that uses this package."""
