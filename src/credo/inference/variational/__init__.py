"""q(theta) by climbing a bound, or from the iterates of a climb."""
