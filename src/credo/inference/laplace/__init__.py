"""A Gaussian around a mode, from the curvature there."""
