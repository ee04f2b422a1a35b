"""The race: several decodings advanced fairly, so that what is ahead on the screen is ahead on the clock."""

from collections.abc import Iterator, Sequence
from threading import Event

from decoding.context import Cancelled
from decoding.decode import Decoding
from decoding.trace import Step


class Cancellation:
    """A flag that ends decodings before their next forward pass; safe to set from another thread."""

    def __init__(self) -> None:
        self._event = Event()

    def cancel(self) -> None:
        """End every decoding that was given `check`."""
        self._event.set()

    def check(self) -> None:
        """To be given as `before_pass`.

        Raises:
            Cancelled: `cancel` was called.
        """
        if self._event.is_set():
            raise Cancelled


def race(lanes: Sequence[Decoding]) -> Iterator[tuple[int, Step]]:
    """Advance the lane that has used the least time so far, one step; yield its index and the step.

    Lanes never run at the same time. A lane's time is the sum of its own steps alone; of equals the first goes ahead.
    """
    running = dict(enumerate(lanes))
    while running:
        index = min(running, key=lambda i: (running[i].seconds, i))
        step = next(running[index], None)
        if step is None:
            del running[index]
        else:
            yield index, step
