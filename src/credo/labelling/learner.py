"""Learning in the background, while people go on: nobody ever waits for it."""

import threading
from dataclasses import replace

from credo._precision import for_threads
from credo._text import in_one_line
from credo.labelling.lesson import Lesson
from credo.labelling.session import Labelling


class BackgroundLearner:
    """Learns from all labels whenever there are new ones, in a thread of its own, and publishes what it thinks.

    Compiled programs run without Python's lock, so that requests are answered meanwhile.

    Arguments:
        lesson: how to learn.

    >>> import credo
    >>> learner = credo.labelling.BackgroundLearner(credo.labelling.Lesson(network="linear"))
    >>> learner.lesson.network, learner.learning, learner.problem
    ('linear', False, '')
    """

    def __init__(self, lesson: Lesson | None = None) -> None:
        self.lesson = Lesson() if lesson is None else lesson
        self.learning, self.problem = False, ""
        self._news, self._is_stopped = threading.Event(), False
        self._thread: threading.Thread | None = None

    def start(self, labelling: Labelling) -> None:
        """Begin, with what the log holds."""
        self._thread = threading.Thread(target=for_threads(self._run), args=(labelling,), name="learner", daemon=True)
        self._news.set()
        self._thread.start()

    def notify(self) -> None:
        """There is something new to learn."""
        self._news.set()

    def stop(self) -> None:
        """End, after the round that is under way."""
        self._is_stopped = True
        self._news.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, labelling: Labelling) -> None:
        while self._news.wait() and not self._is_stopped:
            self._news.clear()
            self.learning = True
            try:
                view = self.lesson.view(labelling.pool, labelling.classes, labelling.votes(), labelling.open_places())
                self.problem = ""
            except KeyboardInterrupt:  # the process is asked to stop, which is for others to tell
                return
            except Exception as error:  # whatever it is, people go on, and are told
                view, self.problem = labelling.view, f"the model could not learn: {in_one_line(str(error), 300)}"
            self.learning = False
            labelling.publish(replace(view, round=labelling.view.round + (not self.problem)))
