"""Room for data that grow: what is compiled for one size serves all up to the next power of two."""


def capacity_for(num_rows: int, least: int = 64) -> int:
    """Rows to pad to, `data.padded(capacity)`, where nobody says how many there will be: `least`, then doubled.

    >>> capacity_for(3), capacity_for(64), capacity_for(65)
    (64, 64, 128)
    """
    return max(least, 1 << (num_rows - 1).bit_length())
