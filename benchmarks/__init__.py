"""Measurements on real histories; nothing here is needed at run time."""
