"""A command that computes together with others: the same command on other machines, or in other processes.

What computes is a worker, which the command that the user started watches: when another process is lost, JAX ends the
worker with a trace of its own, and the command says in one sentence what happened and what to do. What C++ code writes
goes into a file that is shown with --verbose.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, BinaryIO

import typer

from credo._stopping import STOP

Distributed = Annotated[
    str | None,
    typer.Option(
        help="host:port of process 0, to fit with other processes; Slurm, Open MPI and Kubernetes tell it themselves."
    ),
]
NumProcesses = Annotated[int | None, typer.Option(help="How many processes fit together.")]
ProcessId = Annotated[int | None, typer.Option(help="Which of them this is, from 0.")]

# In the environment of a worker: the numbers of its open files, that which C++ code writes to and its lifeline.
WORKER = "CREDO_WORKER"
# As EX_TEMPFAIL of sysexits.h: start again, and it goes on.
LOST = 75
SECONDS_TO_MEET = int(os.environ.get("CREDO_SECONDS_TO_MEET", "120"))
SECONDS_WITHOUT_A_SIGN = 10


@dataclass(frozen=True)
class Others:
    """Where the processes meet; what is None is told by the cluster."""

    coordinator: str | None = None
    num_processes: int | None = None
    process_id: int | None = None

    def __post_init__(self) -> None:
        given = [value is not None for value in (self.coordinator, self.num_processes, self.process_id)]
        if any(given) and not all(given):
            raise ValueError("--distributed, --num-processes and --process-id go together; pass all three, or none")
        if self.coordinator is None or self.num_processes is None or self.process_id is None:
            return
        if not self.coordinator.rpartition(":")[2].isdecimal() or ":" not in self.coordinator:
            raise ValueError(f"--distributed is {self.coordinator!r}; pass host:port of process 0, such as node1:29400")
        if not 0 <= self.process_id < self.num_processes:
            raise ValueError(
                f"--process-id is {self.process_id} of {self.num_processes} processes; they are numbered from 0 to "
                f"{self.num_processes - 1}"
            )

    @property
    def are_there(self) -> bool:
        """Whether there are any: named by flags, or by the variables of a cluster, which JAX reads itself."""
        slurm = "SLURM_STEP_NODELIST" in os.environ and int(os.environ.get("SLURM_NTASKS", "1")) > 1
        mpi = "OMPI_MCA_orte_hnp_uri" in os.environ and int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1")) > 1
        kubernetes = "KUBERNETES_SERVICE_HOST" in os.environ and "JOB_COMPLETION_INDEX" in os.environ
        return self.coordinator is not None or slurm or mpi or kubernetes

    def meet(self) -> None:
        """Bring the processes together, before anything is computed."""
        import jax  # lazy: takes a while

        if self.coordinator is not None and self.process_id:
            self._require_coordinator()
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        try:
            jax.distributed.initialize(
                self.coordinator,
                self.num_processes,
                self.process_id,
                initialization_timeout=SECONDS_TO_MEET,
                heartbeat_timeout_seconds=SECONDS_WITHOUT_A_SIGN,
                shutdown_timeout_seconds=SECONDS_TO_MEET,
            )
        except (RuntimeError, ValueError) as error:
            raise ValueError(
                f"the processes did not come together within {SECONDS_TO_MEET} s; start all of them, with the same "
                f"--distributed and --num-processes ({str(error).splitlines()[0]})"
            ) from error

    def _require_coordinator(self) -> None:
        """Wait for process 0, which may start later."""
        host, _, port = str(self.coordinator).rpartition(":")
        ends = time.monotonic() + SECONDS_TO_MEET
        while True:
            try:
                with socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS_WITHOUT_A_SIGN):
                    return
            except OSError as error:
                if time.monotonic() > ends:
                    raise ValueError(
                        f"--distributed: nobody answers at {self.coordinator} after {SECONDS_TO_MEET} s ({error}); "
                        "start process 0 on that host, and see that the port is open"
                    ) from error
                time.sleep(0.2)


@contextmanager
def together(others: Others, advice: str) -> Iterator[str | None]:
    """The mesh to fit on: None alone. In the process that the user started the worker computes, and this one exits.

    Arguments:
        advice: how to go on.
    """
    if not others.are_there:
        yield None
        return
    if WORKER not in os.environ:
        raise typer.Exit(_watch(advice))
    _become_worker()
    others.meet()
    from credo._processes import ProcessLostError, losses_told  # lazy: imports JAX

    try:
        with losses_told():
            yield "auto"
    except ProcessLostError:
        # The watching process says it, whatever way this one has heard of it.
        os._exit(LOST)


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """A worker that has failed waits for nobody: the others wait for it."""
    try:
        yield
    except SystemExit as end:
        if WORKER in os.environ and end.code:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code if isinstance(end.code, int) else 1)
        raise


def _watch(advice: str) -> int:
    """Run this command as a worker, tell it of signals, and say why it ended if it cannot; its exit code."""
    with tempfile.TemporaryFile() as noise:
        lifeline, held = os.pipe()
        worker = subprocess.Popen(
            [sys.executable, "-m", "credo.cli", *sys.argv[1:]],
            env=os.environ | {WORKER: f"{noise.fileno()},{lifeline}"},
            pass_fds=(noise.fileno(), lifeline),
            start_new_session=True,  # Ctrl-C at the terminal comes here, and is passed on once
        )
        os.close(lifeline)
        with STOP.listening():
            passed_on = False
            while (code := worker.poll()) is None:
                if STOP.signal is not None and not passed_on:
                    worker.send_signal(STOP.signal)
                    passed_on = True
                time.sleep(0.05)
        os.close(held)
        if code >= 0 and code not in (LOST, 128 + signal.SIGABRT):
            return code
        killed = code < 0 and -code != signal.SIGABRT
        what = f"this process was ended by {signal.Signals(-code).name}" if killed else "another process was lost"
        typer.echo(f"credo: {what}, and a fit by several ends with each of them; {advice}", err=True)
        _show(noise)
        return LOST


def _show(noise: BinaryIO) -> None:
    if "--verbose" in sys.argv or "-v" in sys.argv:
        noise.seek(0)
        typer.echo(noise.read().decode(errors="replace"), err=True)


def _become_worker() -> None:
    """What Python says goes where it went, what C++ code says into the file; and end with the process that watches."""
    noise, lifeline = map(int, os.environ[WORKER].split(","))
    for name, number in (("stdout", 1), ("stderr", 2)):
        getattr(sys, name).flush()
        own = os.dup(number)
        os.dup2(noise, number)
        setattr(sys, name, open(own, "w", buffering=1, encoding="utf-8", errors="replace"))  # noqa: SIM115

    def follow() -> None:
        os.read(lifeline, 1)
        os._exit(LOST)

    threading.Thread(target=follow, name="lifeline", daemon=True).start()


def speaks() -> bool:
    """Whether this process is the one that tells people how it goes."""
    if WORKER not in os.environ:
        return True
    from credo._processes import is_first  # lazy: imports JAX

    return is_first()
