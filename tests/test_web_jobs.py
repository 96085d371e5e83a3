"""The queue of the web page: order, bounds, and stopping for good."""

from __future__ import annotations

import threading
import time
from concurrent.futures import wait

import pytest

from snips.web.jobs import Cancelled, Job, Jobs


@pytest.fixture
def jobs():
    queue = Jobs(workers=1, waiting=1)
    yield queue
    queue.close()


class Steps:
    """Work that goes on until it is told to end, and says what it does."""

    def __init__(self) -> None:
        self.started, self.end, self.steps = threading.Event(), threading.Event(), 0

    def __call__(self, job: Job) -> str:
        self.started.set()
        while not self.end.is_set():
            self.steps += 1
            job.report(self.steps)
            time.sleep(0.001)
        return "finished"


def finish(job: Job) -> None:
    wait([job.future], timeout=10)
    assert job.done


def test_a_job_runs_and_reports(jobs):
    work = Steps()
    job = jobs.submit("a", work)
    assert work.started.wait(10)
    assert job.started
    work.end.set()
    assert job.future.result(10) == "finished"
    assert job.progress == work.steps
    assert not job.cancelled


def test_cancel_stops_the_work_at_its_next_step(jobs):
    work = Steps()
    job = jobs.submit("a", work)
    assert work.started.wait(10)
    jobs.cancel("a")
    finish(job)
    assert job.cancelled
    assert isinstance(job.future.exception(), Cancelled)
    steps = work.steps
    time.sleep(0.05)
    assert work.steps == steps  # it is over, not hidden
    assert jobs.submit("a", lambda _: "next").future.result(10) == "next"


def test_one_job_for_each_visitor(jobs):
    work = Steps()
    jobs.submit("a", work)
    with pytest.raises(ValueError, match="one restoration at a time"):
        jobs.submit("a", work)
    work.end.set()


def test_the_queue_has_an_order_and_an_end(jobs):
    first, second = Steps(), Steps()
    running = jobs.submit("a", first)
    waiting = jobs.submit("b", second)
    with pytest.raises(ValueError, match="2 restorations are running or waiting already: try again later"):
        jobs.submit("c", first)
    assert first.started.wait(10)
    assert (jobs.ahead(running), jobs.ahead(waiting)) == (0, 1)
    assert not second.started.is_set()
    jobs.cancel("a")
    assert second.started.wait(10)
    assert jobs.ahead(waiting) == 0
    assert running.cancelled
    second.end.set()


def test_a_waiting_job_leaves_the_queue_at_once(jobs):
    first, second = Steps(), Steps()
    jobs.submit("a", first)
    waiting = jobs.submit("b", second)
    jobs.cancel("b")
    assert waiting.done
    assert waiting.cancelled
    third = jobs.submit("c", second)  # its place is free again
    assert jobs.ahead(third) == 1
    assert not second.started.is_set()


def test_several_jobs_at_once():
    queue = Jobs(workers=2, waiting=2)
    works = [Steps() for _ in range(4)]
    submitted = [queue.submit(str(k), work) for k, work in enumerate(works)]
    assert works[0].started.wait(10)
    assert works[1].started.wait(10)
    assert [queue.ahead(job) for job in submitted] == [0, 0, 1, 2]
    queue.close()
    assert all(job.cancelled for job in submitted)
    assert not works[2].started.is_set()


def test_a_failure_is_kept_for_the_visitor_and_frees_the_worker(jobs):
    def fail(job: Job) -> None:
        raise ValueError("the reason")

    failed = jobs.submit("a", fail)
    finish(failed)
    assert str(failed.future.exception()) == "the reason"
    assert not failed.cancelled
    assert jobs.submit("a", lambda _: 1).future.result(10) == 1
