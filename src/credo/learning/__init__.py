"""Loops that use uncertainty: asking for labels, learning from a stream."""

from credo.learning import acquisitions

__all__ = ["acquisitions"]
