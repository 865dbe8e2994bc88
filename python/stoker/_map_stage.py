"""Runs a user's callables on batches ahead of the caller, in threads, in order."""

from __future__ import annotations

import functools
import inspect
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy
from numpy.random.bit_generator import ISeedSequence

from . import _arrays, _core
from ._batches import Assembler, Batch, Raw, collate
from ._context import log
from ._device import MapStreams
from .errors import BusyError, CancelledError, MapError, ShapeError

_PATIENCE = 1.0  # seconds that closing waits for a callable to return


class Mapper:
    """sample_map and map as one function of a batch."""

    def __init__(
        self,
        assembler: Assembler,
        sample_map: Callable[..., Any] | None,
        map_: Callable[[Any], Any] | None,
        seed: int,
        template: Callable[[], Any],
        allow_nan: bool = False,
        streams: MapStreams | None = None,
    ) -> None:
        self.streams = streams  # of a loader with a device
        self._assembler = assembler
        self._sample_map = sample_map
        self._map = map_
        self._seed = seed
        self._template = template  # a sample, for the shapes of a batch that has none
        self._allow_nan = allow_nan
        self._takes_rng = sample_map is not None and _takes_two(sample_map)

    def __call__(self, raw: Raw, tell: Callable[[str], None]) -> Any:
        """The batch as the caller gets it. tell: what is being done, for whoever waits."""
        if self.streams is None:
            return self._over_batch(raw, tell)
        return self.streams.run(lambda: self._over_batch(raw, tell))

    def _over_batch(self, raw: Raw, tell: Callable[[str], None]) -> Any:
        if self._sample_map is None:
            batch = self._assembler.batch(raw)
        else:
            batch = self._over_samples(raw, tell)
        if self._map is None:
            return batch
        tell(f"map on step {raw.step}")
        try:
            result = self._map(batch)
        except Exception as error:
            words = f"map raised {_describe(error)} on step {raw.step} of epoch {raw.epoch}"
            raise MapError(words, stage="map") from error
        if result is None:
            raise MapError("map returned None", stage="map", remedy="return the batch")
        self._check_nan(result, batch, "map", f"step {raw.step} of epoch {raw.epoch}", None)
        return _keep_labels(result, batch)

    def _over_samples(self, raw: Raw, tell: Callable[[str], None]) -> Any:
        numbers = raw.numbers().tolist()
        mask = None if raw.mask is None else self._assembler.array(raw.mask)
        results = []
        for number, view in zip(numbers, self._assembler.views(raw), strict=False):
            tell(f"sample_map on sample {number}")
            results.append(self._over_one(view, raw.epoch, number))
        if not results:
            return self._empty(raw, mask)
        try:
            return collate(results, raw, self._assembler.as_, mask)
        except (ShapeError, KeyError, ValueError, TypeError) as error:
            words = str(error) if isinstance(error, ShapeError) else _describe(error)
            sample = getattr(error, "sample", None)
            raise MapError(
                f"the results of sample_map do not make a batch: {words}",
                stage="sample_map",
                sample=sample,
                remedy="return the same fields, shapes and types for each sample",
            ) from error

    def _over_one(self, view: Any, epoch: int, number: int, may_be_nan: bool = False) -> Any:
        assert self._sample_map is not None
        try:
            if self._takes_rng:
                result = self._sample_map(view, sample_generator(self._seed, epoch, number))
            else:
                result = self._sample_map(view)
        except Exception as error:
            raise MapError(
                f"sample_map raised {_describe(error)} on sample {number} of epoch {epoch}",
                stage="sample_map",
                sample=number,
            ) from error
        if result is None:
            raise MapError(
                f"sample_map returned None on sample {number}",
                stage="sample_map",
                sample=number,
                remedy="return the sample",
            )
        if not may_be_nan:
            self._check_nan(result, view, "sample_map", f"sample {number} of epoch {epoch}", number)
        return result

    def _check_nan(
        self, result: Any, given: Any, stage: str, place: str, sample: int | None
    ) -> None:
        """NaN that a callable made is an error. What it hands on as it came is not looked at."""
        if self._allow_nan:
            return
        came = {id(value) for value in _values(given).values()}
        for name, value in _values(result).items():
            if id(value) not in came and _arrays.has_nan(value):
                raise MapError(
                    f"{stage} returned NaN in {name} on {place}",
                    stage=stage,
                    sample=sample,
                    remedy='if NaN is meant, say Loader(..., map_nan="pass")',
                )

    def _empty(self, raw: Raw, mask: Any) -> Any:
        """A batch without a sample: masked places only, or none; shaped as mapped samples are."""
        sample = self._assembler.like(raw, self._template())
        result = self._over_one(sample, raw.epoch, 0, may_be_nan=True)
        one = raw._replace(places=max(1, raw.places), real=1)
        batch = collate([result], one, self._assembler.as_, mask)

        def blank(value: Any) -> Any:
            if value is mask:
                return value
            if isinstance(value, list):
                return [None] * raw.places
            value = value[: raw.places]
            value[...] = 0
            return value

        if isinstance(batch, Batch):
            for name in batch:
                batch[name] = blank(batch[name])
            return batch
        return tuple(map(blank, batch)) if isinstance(batch, tuple) else blank(batch)


def sample_generator(seed: int, epoch: int, sample: int) -> numpy.random.Generator:
    """The random numbers of one sample in one epoch: the same whatever thread, rank or batch it is
    in.

    >>> one, two = sample_generator(0, 0, 7), sample_generator(0, 0, 7)
    >>> one.random() == two.random()
    True
    """
    bits = numpy.random.Philox(_key(seed, epoch), counter=[0, 0, 0, sample])
    return numpy.random.Generator(bits)


class _Key(ISeedSequence):
    """The words themselves, as Philox(key=...) takes them; but that also draws entropy from the
    system, which is not used and takes longer than all the rest."""

    def __init__(self, words: list[int]) -> None:
        self.words = numpy.array(words, numpy.uint64)

    def generate_state(self, n_words: int, dtype: Any = numpy.uint32) -> numpy.ndarray:
        return self.words


@functools.lru_cache(maxsize=8)
def _key(seed: int, epoch: int) -> _Key:
    return _Key([seed, epoch])


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    plain = [one for one in parameters if one.kind in kinds]
    return len(plain) >= 2 and (plain[1].default is plain[1].empty or plain[1].name == "rng")


def _values(result: Any) -> dict[str, Any]:
    """The parts of a batch or a sample, by what they are called."""
    if isinstance(result, Mapping):
        return {str(name): value for name, value in result.items()}
    if isinstance(result, (tuple, list)):
        return {f"item {i}": value for i, value in enumerate(result)}
    return {"its result": result}


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _keep_labels(result: Any, batch: Any) -> Any:
    """A map that returns a plain dict still gives a batch that knows its samples."""
    if isinstance(batch, Batch) and type(result) is dict:
        result = Batch(result)
    if isinstance(batch, Batch) and isinstance(result, Batch) and result is not batch:
        result.samples, result.epoch, result.step = batch.samples, batch.epoch, batch.step
    return result


class _End:
    """The epoch is over."""


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class MapStage:
    """A bounded look-ahead: threads draw batches in order, map them, and put them in their places.

    One thread at a time draws (under `_draw_lock`); everything else is under `_lock`."""

    def __init__(
        self,
        core: _core.Loader,
        epoch: int,
        mapper: Mapper,
        threads: int,
        stall_seconds: float,
        timeout: float | None,
    ) -> None:
        self.waited = 0.0  # seconds that the caller waited for a batch
        self._core = core
        self._epoch = epoch
        self._mapper = mapper
        self._stall_seconds = stall_seconds
        self._timeout = timeout
        self._room = threads + 1  # batches drawn and not yet delivered, at most
        self._draw_lock = threading.Lock()
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)  # the batch that the caller awaits is there
        self._room_made = threading.Condition(self._lock)  # the caller has taken one
        self._awaited = False  # the caller is in next
        self._drawn = 0
        self._delivered = 0
        self._results: dict[int, tuple[Any, str]] = {}  # by turn: the batch, the state after it
        self._doing: dict[int, str] = {}  # by turn: what its callable is busy with
        self._over = False  # nothing more is to be drawn
        self._ended = False  # the caller has been told of the end
        self._process = os.getpid()
        self._threads = [
            threading.Thread(target=self._run, name=f"stoker-map-{i}", daemon=True)
            for i in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def next(self) -> tuple[Any, str] | None:
        """The next batch and the state after it; None at the end. Raises what went wrong."""
        with self._lock:
            if self._ended:
                return None
            if self._awaited:
                raise BusyError("another thread is waiting for the next batch")
            self._awaited = True
            try:
                result, state = self._wait()
            finally:
                self._awaited = False
            if isinstance(result, _End):
                self._ended = True
                return None
        if isinstance(result, _Failure):
            raise result.error
        if self._mapper.streams is not None:
            result = self._mapper.streams.take(result, self._core.use)
        return result, state

    def _wait(self) -> tuple[Any, str]:
        began = time.monotonic()
        turn = self._delivered
        told = False
        while turn not in self._results:
            if not self._threads:
                raise CancelledError("the iteration was ended while its next batch was awaited")
            self._ready.wait(0.2)
            told = self._look_at(turn, time.monotonic() - began, told)
        self._delivered += 1
        self._room_made.notify()
        self.waited += time.monotonic() - began
        return self._results.pop(turn)

    def _look_at(self, turn: int, waited: float, told: bool) -> bool:
        doing = self._doing.get(turn, "a batch of the loader")
        if self._timeout is not None and waited > self._timeout and turn in self._doing:
            stage = doing.split()[0]
            raise MapError(f"{doing} has not returned after {waited:.1f} s", stage=stage)
        if waited > self._stall_seconds and not told:
            log.warning("no batch for %.0f s: waiting for %s", waited, doing)
            return True
        return told

    def close(self) -> None:
        """Stops drawing and ends the threads; a callable that does not return is left to itself."""
        if self._process != os.getpid():
            return  # a forked child has none of the threads, and may have a lock that one held
        with self._lock:
            if not self._threads:
                return
            threads, self._threads = self._threads, []
            self._over = True
            self._ready.notify_all()
            self._room_made.notify_all()
        self._core.interrupt(True)
        until = time.monotonic() + _PATIENCE
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))
        self._core.interrupt(False)
        with self._lock:
            self._results.clear()
            left = sum(thread.is_alive() for thread in threads)
        if left:
            log.warning(
                "%d of your map callables did not return; they are left to themselves", left
            )

    def _run(self) -> None:
        while True:
            drawn = self._draw()
            if drawn is None:
                return
            turn, result, state = drawn
            if isinstance(result, Raw):
                result = self._work(turn, result)
            with self._lock:
                self._doing.pop(turn, None)
                self._results[turn] = result, state
                if turn == self._delivered:
                    self._ready.notify()

    def _draw(self) -> tuple[int, Any, str] | None:
        with self._draw_lock:
            with self._lock:
                while not self._over and self._drawn - self._delivered >= self._room:
                    self._room_made.wait()
                if self._over:
                    return None
                turn = self._drawn
                self._drawn += 1
            result: Any = _End()
            state = ""
            try:
                got = self._core.next(self._epoch)
                state = self._core.save()
                if got is not None:
                    return turn, Raw.of(got), state
            except BaseException as error:
                result = _Failure(error)
            with self._lock:
                self._over = True
            return turn, result, state

    def _work(self, turn: int, raw: Raw) -> Any:
        def tell(what: str) -> None:
            self._doing[turn] = what

        try:
            return self._mapper(raw, tell)
        except BaseException as error:
            return _Failure(error)
