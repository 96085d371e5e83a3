"""A queue of restorations: a few at a time, one for each visitor, each of which can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Cancelled(KeyboardInterrupt):
    """Raised inside the work of a job that its visitor no longer wants. As Ctrl-C: restore() keeps what is finished."""


class Job:
    """One restoration, from the queue to its end."""

    def __init__(self) -> None:
        self.started = False
        self.progress: Any = None  # the newest report; older ones are of no interest
        self.future: Future[Any] = Future()
        self._stop = threading.Event()

    def report(self, progress: Any) -> None:
        """Called by the work after each step: leaves word, and stops the work once it is cancelled."""
        self.progress = progress
        if self._stop.is_set():
            raise Cancelled

    def cancel(self) -> None:
        self._stop.set()
        self.future.cancel()  # leaves the queue at once, where it has not started

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def done(self) -> bool:
        return self.future.done()

    @property
    def cancelled(self) -> bool:
        """Whether it was stopped before it had a result."""
        return self.future.cancelled() or (self.done and isinstance(self.future.exception(), Cancelled))


Work = Callable[[Job], Any]


class Jobs:
    """Runs at most `workers` jobs at once and lets `waiting` more wait, in the order they came."""

    def __init__(self, workers: int, waiting: int) -> None:
        self.workers, self.waiting = workers, waiting
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="snips-job")
        self._jobs: dict[str, Job] = {}  # by visitor, in the order they came
        self._lock = threading.Lock()

    def submit(self, visitor: str, work: Work) -> Job:
        """Queue the work of a visitor, or say why not."""
        with self._lock:
            jobs = self._alive()
            if visitor in jobs:
                raise ValueError("one restoration at a time: wait for the running one, or cancel it first")
            if len(jobs) >= self.workers + self.waiting:
                raise ValueError(f"{len(jobs)} restorations are running or waiting already: try again later")
            job = jobs[visitor] = Job()
            job.future = self._pool.submit(_run, job, work)
            return job

    def ahead(self, job: Job) -> int:
        """How many jobs must end before this one starts."""
        with self._lock:
            jobs = list(self._alive().values())
        if job.started or job not in jobs:
            return 0
        return max(0, jobs.index(job) - self.workers + 1)

    def cancel(self, visitor: str) -> None:
        """Stop a visitor's job, if there is one: at once where it waits, after the current step where it runs."""
        with self._lock:
            if (job := self._alive().get(visitor)) is not None:
                job.cancel()

    def close(self) -> None:
        """Stop everything and wait for the current steps to end."""
        with self._lock:
            for job in self._alive().values():
                job.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _alive(self) -> dict[str, Job]:
        """The jobs that wait or run; called with the lock held, it lets go of all others and of their results."""
        self._jobs = {visitor: job for visitor, job in self._jobs.items() if not job.done}
        return self._jobs


def _run(job: Job, work: Work) -> Any:
    job.started = True
    job.report(None)  # cancelled between the queue and here
    return work(job)
