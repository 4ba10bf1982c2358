"""One value of theta."""
