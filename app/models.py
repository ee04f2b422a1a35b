"""The pair of models of this server: loaded once, in the background, shared by all visitors."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread

from decoding.pair import ModelPair


class Models:
    """Loads a pair when it is first wanted; after a failure the next one who wants it tries again.

    Args:
        target, draft: names of the two models.
        load: does the loading; may take long.
    """

    def __init__(self, target: str, draft: str, load: Callable[[], ModelPair]) -> None:
        self.target = target
        self.draft = draft
        self._load = load
        self._lock = Lock()
        self._future: Future[ModelPair] | None = None

    def wanted(self) -> Future[ModelPair]:
        """The pair, now or later; starts loading unless that is done or under way."""
        with self._lock:
            if self._future is None or (self._future.done() and self._future.exception()):
                self._future = Future()
                Thread(target=self._fill, args=(self._future,), name="load models", daemon=True).start()
            return self._future

    def ready(self) -> ModelPair | None:
        """The pair, if it is there by now."""
        with self._lock:
            future = self._future
        return future.result() if future and future.done() and not future.exception() else None

    def load_here(self) -> None:
        """Load on the calling thread: ZeroGPU only moves what the main thread put on its GPU before the page started."""
        with self._lock:
            self._future = Future()
        self._fill(self._future)

    def _fill(self, future: Future[ModelPair]) -> None:
        try:
            future.set_result(self._load())
        except Exception as error:
            future.set_exception(error)
