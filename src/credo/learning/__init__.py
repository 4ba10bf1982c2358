"""Loops that use uncertainty: asking for labels, learning from a stream."""
