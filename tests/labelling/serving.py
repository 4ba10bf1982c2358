"""A server of the page in a process of its own, which tests kill: `python -m tests.labelling.serving pool out port`."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from credo.cli.signals import watch

CLASSES = ("even", "odd")


def lines(folder: Path, num: int = 80) -> Path:
    """A pool of lines of text: numbers, so that everyone knows their labels."""
    path = folder / "numbers.txt"
    path.write_text("".join(f"number {number}\n" for number in range(1, num + 1)))
    return path


def truth(text: str) -> str:
    return CLASSES[int(text.split()[-1]) % 2]


class Server:
    """A server that can be killed and started again, at the same port."""

    def __init__(self, pool: Path, out: Path) -> None:
        self.pool, self.out, self.port, self.process = pool, out, 0, None

    def start(self) -> str:
        command = [sys.executable, "-m", "tests.labelling.serving", str(self.pool), str(self.out), str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        address = self.process.stdout.readline().strip()
        self.port = int(address.rsplit(":", 1)[1].strip("/"))
        return address

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def answers(self) -> list[tuple[str, str, str, str | None]]:
        """What is on disk: labeller, item, kind and label, in order."""
        log = self.out.with_name(f"{self.out.name}.log.jsonl").read_text().splitlines()[1:]
        return [tuple(json.loads(line)[name] for name in ("labeller", "item", "kind", "label")) for line in log]


@contextmanager
def served(pool: Path, out: Path) -> Iterator[Server]:
    server = Server(pool, out)
    server.start()
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()


def main() -> None:
    watch()
    # Lazy: threads that imports begin must not answer signals.
    from credo.labelling.opening import opened
    from credo.labelling.server import serve

    with opened(sys.argv[1], sys.argv[2], classes=CLASSES) as labelling:
        serve(labelling, port=int(sys.argv[3]), say=lambda address: print(address, flush=True))


if __name__ == "__main__":
    main()
