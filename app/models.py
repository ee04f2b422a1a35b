"""The pairs of models of this server: loaded in the background when first wanted, shared by all visitors."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from threading import Lock, Thread

from decoding.pair import ModelPair
from decoding.presets import Preset


class Models:
    """Loads pairs when they are first wanted; after a failure the next one who wants a pair tries again.

    Args:
        presets: the pairs on offer; the first is the default and, once loaded, stays.
        load: loads a pair by its key; may take long.
    """

    def __init__(self, presets: Mapping[str, Preset], load: Callable[[str], ModelPair]) -> None:
        self.presets = presets
        self.default = next(iter(presets))
        self._load = load
        self._lock = Lock()
        self._futures: dict[str, Future[ModelPair]] = {}

    def wanted(self, keys: Iterable[str]) -> dict[str, Future[ModelPair]]:
        """The pairs, now or later; starts to load those that are neither there nor under way.

        Of the other pairs only the default one is kept, so that memory holds what is in use.
        """
        with self._lock:
            futures = {key: self._usable(key) or self._started(key) for key in keys}
            kept = {self.default, *futures}
            self._futures = {key: future for key, future in self._futures.items() if key in kept} | futures
            return futures

    def ready(self, key: str) -> ModelPair | None:
        """A pair, if it is there by now."""
        with self._lock:
            future = self._usable(key)
        return future.result() if future and future.done() else None

    def load_here(self) -> None:
        """Load the default pair on the calling thread: ZeroGPU only moves what the main thread put on its GPU at start."""
        future: Future[ModelPair] = Future()
        with self._lock:
            self._futures[self.default] = future
        self._fill(self.default, future)

    def _usable(self, key: str) -> Future[ModelPair] | None:
        future = self._futures.get(key)
        return None if future is None or (future.done() and future.exception()) else future

    def _started(self, key: str) -> Future[ModelPair]:
        future: Future[ModelPair] = Future()
        Thread(target=self._fill, args=(key, future), name=f"load {key}", daemon=True).start()
        return future

    def _fill(self, key: str, future: Future[ModelPair]) -> None:
        try:
            future.set_result(self._load(key))
        except Exception as error:
            future.set_exception(error)
