"""Runs: the fit of a table in a folder, and methods side by side on one table."""

from credo.runs.run import Config, Prepared, Run, describe, is_run, prepare, remove, require_free

__all__ = ["Config", "Prepared", "Run", "describe", "is_run", "prepare", "remove", "require_free"]
