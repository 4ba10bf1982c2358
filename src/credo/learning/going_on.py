"""What cannot be the prior of what comes next, and the reason."""


class NothingToGoOnFrom(ValueError):
    """What is known cannot become the prior of new rows; learned together with the old ones, they can still be known.

    Arguments:
        why: it cannot.
        instead: what to do.
    """

    def __init__(self, why: str, instead: str) -> None:
        super().__init__(why, instead)
        self.why, self.instead = why, instead

    def __str__(self) -> str:
        return f"{self.why}; {self.instead}"
