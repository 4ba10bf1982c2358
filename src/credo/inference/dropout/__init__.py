"""Masks that drop units."""
