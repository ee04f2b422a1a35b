"""Whose run is going on: at most one for each visitor, and how it is stopped."""

import uuid
from threading import Lock

from decoding.race import Cancellation


class StoppableRun(Cancellation):
    """A cancellation that says whether it was used, and whether its run has begun or still waits in the queue."""

    cancelled = False
    begun = False

    def cancel(self) -> None:
        """End the run before its next forward pass."""
        self.cancelled = True
        super().cancel()


class Runs:
    """The cancellations of the runs under way, by run, and each visitor's latest run."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._cancellations: dict[str, StoppableRun] = {}
        self._latest: dict[str, str] = {}

    def open(self, visitor: str | None) -> str:
        """Register a new run, which replaces the visitor's last one, if it is anyone's; its id."""
        if visitor:
            self.stop(visitor)
        run = uuid.uuid4().hex
        with self._lock:
            self._cancellations[run] = StoppableRun()
            if visitor:
                self._latest[visitor] = run
        return run

    def stop(self, visitor: str) -> bool:
        """Stop the visitor's run, if there is one, before its next forward pass; whether it had not even begun."""
        with self._lock:
            name = self._latest.get(visitor, "")
            run = self._cancellations.get(name)
        if run is None:
            return False
        run.cancel()
        if not run.begun:
            self.close(name)  # nobody will: it never comes to run
        return not run.begun

    def leave(self, visitor: str) -> None:
        """The visitor is gone: stop and forget what they had."""
        with self._lock:
            run = self._latest.get(visitor, "")
        self.close(run)

    def begin(self, run: str) -> StoppableRun | None:
        """Begin a run that waited; None if it has been stopped or has begun before."""
        with self._lock:
            waiting = self._cancellations.get(run)
            if waiting is None or waiting.cancelled or waiting.begun:
                return None
            waiting.begun = True
            return waiting

    def cancellation(self, run: str) -> StoppableRun:
        """The cancellation of a run.

        A forked worker does not know the runs that began after it: there a run ends because nobody takes its next step.
        """
        with self._lock:
            return self._cancellations.get(run) or StoppableRun()

    def is_busy(self, visitor: str) -> bool:
        """Whether the visitor's run is under way or waits."""
        with self._lock:
            return self._latest.get(visitor, "") in self._cancellations

    @property
    def count(self) -> int:
        """How many runs are under way or wait."""
        return len(self._cancellations)

    def close(self, run: str) -> None:
        """Stop a run for good and forget it."""
        with self._lock:
            cancellation = self._cancellations.pop(run, None)
            self._latest = {visitor: latest for visitor, latest in self._latest.items() if latest != run}
        if cancellation:
            cancellation.cancel()
