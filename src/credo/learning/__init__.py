"""Loops that use uncertainty: what to ask next, and learning that goes on."""
