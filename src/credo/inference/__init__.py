"""Inference: the engine that runs every method, and one file per method."""
