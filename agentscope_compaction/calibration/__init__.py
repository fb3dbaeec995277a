"""Thresholds for a decision model from a user's own histories: cuts, later use, curve, profile."""
