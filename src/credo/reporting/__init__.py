"""One page from scores and plots."""
