"""The engine: runs every method as compiled chunks, with progress, checkpoints and health checks in between."""
