"""Exact posteriors of models that are linear in their weights."""
