"""Reports: one HTML page from scores and plots."""
