"""Shared by all tests: how far a Monte Carlo estimate may be off before a test fails."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")
