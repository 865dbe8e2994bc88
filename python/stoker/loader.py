"""The loader: batches, in order."""

from __future__ import annotations

import atexit
import functools
import json
import operator
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from . import _arrays, _core
from . import dataset as _dataset
from ._batches import Assembler, Raw
from ._chain import Chain, chain_text
from ._device import MapStreams, array_kind, read_device, record, settle, tensors_in
from ._map_stage import Mapper, MapStage
from ._options import Fields, Source, find_ranks, parse_size
from .dataset import Dataset
from .errors import BadSampleError, BusyError, StokerError, UsageError

if TYPE_CHECKING:
    from ._iterable import LoaderIterable

_live: weakref.WeakSet[Loader] = weakref.WeakSet()


def _close_all() -> None:
    for loader in list(_live):
        loader.close()


atexit.register(_close_all)


class Loader:
    """Draws batches from a dataset, ahead of you, in threads of its own.

    Iterate over it: each ``iter(loader)`` begins the next epoch, after a ``break`` too; after
    :meth:`load_state_dict` the first one goes on where the state was saved; :meth:`set_epoch`
    overrides. An iterator that gave no batch does not count. One iteration at a time: a new one
    ends the one before.

    A batch is a dict of the fields (or a tuple, when the fields were given as one). Tensors share
    the loader's memory; it is used again when the last tensor of a batch is gone. Numbers
    (``cls``) come as an int64 tensor; text, json and bytes as lists. With ``last="mask"`` there is
    ``batch["mask"]`` (last, in a tuple); a padded field has ``batch["F_lengths"]`` beside it and
    an optional tensor ``batch["F_present"]`` (in a tuple the field is then a tuple of these).
    Images, recordings, videos and point clouds come decoded, through the chain in `transforms`;
    where that pads, ``batch["F_mask"]`` (B, length) is beside the lengths and says what is real.
    ``batch.samples`` tells which samples they are. numpy has no bfloat16: there it shows the bits,
    as uint16.

    Args:
        dataset: a :class:`Dataset`, or what :func:`open` takes.
        batch_size: samples a batch, on this rank.
        global_batch_size: instead: samples a batch of all ranks together.
        shuffle: a new order each epoch.
        seed: of the order, of transforms, and of `sample_map`'s random numbers.
        order: ``"sequential"``, ``"global"`` (a true shuffle) or ``"local"`` (shards are shuffled,
            then samples among `reach` of them); ``"time"`` for a series: by the time of the
            window's last row, then by entity. Default: by `shuffle`; local where shards are
            compressed, and where more than 2 GiB lie on the network, or 128 MiB of samples
            below 64 KiB (docs/order.md).
        reach: how many chunks the local order mixes.
        rank, world_size: which share is ours. Default: torch.distributed's, when it is
            initialised, else RANK and WORLD_SIZE of the environment, else all of it.
        last: what happens to samples that do not fill a batch: ``"short"`` (default on one rank),
            ``"mask"`` (default on several: equal shapes, and a mask), ``"drop"``.
        drop_last: the same as ``last="drop"``.
        bad: ``"raise"``, or ``"replace"`` bad samples by others and list them in
            :attr:`quarantine`.
        ragged: tensors of unequal shape: ``"error"``, ``"pad"`` the first axis, ``"list"``, or
            ``"flat"``: all rows in one tensor, and ``batch["F_offsets"]`` (B + 1) beside it: sample
            i has the rows from ``offsets[i]`` to ``offsets[i + 1]``.
        transforms: what is done with the values of a field, by its name:
            ``{"jpg": [stoker.RandomResizedCrop(224), stoker.RandomHorizontalFlip()]}``, or as text:
            ``{"jpg": "RandomResizedCrop(224) | RandomHorizontalFlip"}``. Random choices depend on
            seed, epoch and sample alone. Default: media are decoded whole.
        batch_transforms: what is done with whole batches: :class:`MixUp`, :class:`CutMix`.
        memory: the most bytes that the loader holds: ``"2GiB"``.
        threads: that read and decode; default: the cores this process may use.
        depth: batches in flight; default: chosen.
        io: ``"auto"``, ``"pread"`` or ``"io_uring"``.
        weights: a number a sample: an epoch then draws as many samples as there are, with
            replacement.
        map: a callable on the batch.
        sample_map: a callable on the sample, before batches are made of its results. When it takes
            two arguments, the second is a ``numpy.random.Generator`` keyed by seed, epoch and
            sample. Do not keep what it is given: it is a view of the loader's memory.
        map_threads: that run `map` and `sample_map`; default: the cores, at most 4.
        map_timeout: seconds after which a callable that does not return is an error; default:
            never.
        map_nan: ``"error"``: NaN that a callable makes is one; or ``"pass"``.
        fields: read other fields than the dataset was opened with; see :func:`open`.
        as_: ``"torch"``, ``"numpy"``, or ``"dlpack"``: plain tensors for CuPy, JAX and Numba, with
            ``__dlpack__``, ``shape``, ``dtype``, ``device`` and ``to_host()``. Default: the
            dataset's.
        device: where batches are handed over: ``"cpu"``, ``"cuda"`` (under torchrun the GPU of the
            local rank, else torch's current one), ``"cuda:1"``, a ``torch.device``, or ``"auto"``:
            a GPU where there is one. See :meth:`record_stream` for work in several streams.
        device_memory: the most bytes that batches made ahead and resident data take on the device:
            ``"4GiB"``. Default: 1 GiB for batches, half of what is free for resident data.
        resident: keep the data itself on the device, as the first epoch brings it there: True, or
            ``"auto"`` when it fits. Tensors and series; order, state and values are the same.
        decode: who decodes JPEGs for a device: ``"cpu"``, ``"gpu"``, or ``"auto"``: both, in a
            share that is measured once and kept in the state.
        pin: put worker threads on cores of their own.
        trace: write a Perfetto trace here on close.
        stall_seconds: a longer wait is told once through ``logging.getLogger("stoker")``.

    >>> loader = stoker.Loader(ds, batch_size=32, shuffle=True, seed=0)
    >>> for batch in loader:
    ...     x, y = batch["npy"], batch["cls"]
    >>> loader.close()
    """

    def __init__(
        self,
        dataset: Dataset | Source | Sequence[Source],
        batch_size: int | None = None,
        *,
        global_batch_size: int | None = None,
        shuffle: bool = False,
        seed: int = 0,
        order: str | None = None,
        reach: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        last: str | None = None,
        drop_last: bool = False,
        bad: str = "raise",
        ragged: str = "error",
        memory: int | str = "2GiB",
        threads: int | None = None,
        depth: int | None = None,
        io: str = "auto",
        weights: Sequence[float] | numpy.ndarray | None = None,
        transforms: Mapping[str, Chain] | None = None,
        batch_transforms: Chain | None = None,
        map: Callable[[Any], Any] | None = None,
        sample_map: Callable[..., Any] | None = None,
        map_threads: int | None = None,
        map_timeout: float | None = None,
        map_nan: str = "error",
        fields: Fields = None,
        as_: str | None = None,
        device: Any = None,
        device_memory: int | str | None = None,
        resident: bool | str = False,
        decode: str = "auto",
        pin: bool = True,
        trace: Source | None = None,
        stall_seconds: float = 30,
    ) -> None:
        self._core: _core.Loader | None = None
        self._stage: MapStage | None = None
        where = read_device(device, device_memory, resident, decode)
        for name, callable_ in (("map", map), ("sample_map", sample_map)):
            if callable_ is not None and not callable(callable_):
                raise TypeError(f"{name} is {callable_!r}, which cannot be called")
        if not isinstance(dataset, Dataset):
            dataset = _dataset.open(dataset, fields=fields, as_=as_)
        elif fields is not None:
            dataset = dataset.with_fields(fields)
        _check_counts(seed=seed, threads=threads, depth=depth, reach=reach, map_threads=map_threads)
        ranks = find_ranks(rank, world_size)
        self.dataset = dataset
        self.batch_size, self.global_batch_size = _read_sizes(batch_size, global_batch_size)
        self.rank, self.world_size, self.seed = ranks.rank, ranks.world_size, operator.index(seed)
        self.last = _read_last(last, drop_last, ranks.world_size)
        self.drop_last = self.last == "drop"
        kind = array_kind(as_, dataset._as, where)
        _arrays.load(kind)
        if kind == "dlpack" and sample_map is not None:
            raise UsageError(
                'sample_map needs arrays, and as_ is "dlpack"',
                remedy='give as_="torch" or "numpy", or use map=, which gets the whole batch',
            )
        where = settle(where, kind, sample_map is not None)
        self.transforms = _read_transforms(transforms)
        self.batch_transforms = None if batch_transforms is None else chain_text(batch_transforms)
        if self.last == "mask" and not dataset._as_tuple and "mask" in dataset.fields:
            raise ValueError("a field is called mask, and so is the mask; ask for tuples instead")
        passes_nan = _read_choice("map_nan", map_nan, ("error", "pass")) == "pass"
        self._map_threads = map_threads or min(4, len(os.sched_getaffinity(0)))
        self._map_timeout = map_timeout
        self._stall_seconds = float(stall_seconds)
        self._core = _core.Loader(
            dataset._handle,
            batch_size=self.batch_size,
            global_batch_size=self.global_batch_size,
            shuffle=shuffle,
            order=order or "auto",
            reach=reach,
            seed=self.seed,
            rank=ranks.rank,
            world_size=ranks.world_size,
            last=self.last,
            bad=bad,
            ragged=ragged,
            memory=parse_size(memory),
            threads=threads,
            local_rank=ranks.local_rank,
            local_world_size=ranks.local_world_size,
            depth=depth,
            io=io,
            weights=_read_weights(weights),
            pin=pin,
            stall_seconds=self._stall_seconds,
            trace=None if trace is None else os.fspath(trace),
            transforms=[os.fsencode(text) for pair in self.transforms.items() for text in pair],
            batch_transforms=self.batch_transforms or None,
            device=where.kind,
            device_number=where.number,
            device_memory=where.memory,
            resident=where.resident,
            decode=where.decode,
        )
        on_device = where.kind != "cpu" and self._core.stats()["device"] is not None
        gpu = where.number if on_device else None
        self.device = "cpu" if gpu is None else f"cuda:{gpu}"
        self._assembler = Assembler(
            list(dataset.fields.values()),
            kind,
            dataset._as_tuple,
            list(self.transforms),
            gpu,
        )
        self._mapper: Mapper | None = None
        if map is not None or sample_map is not None:
            template = functools.partial(_any_sample, dataset, self._assembler)
            streams = None if gpu is None or kind != "torch" else MapStreams(gpu)
            self._mapper = Mapper(
                self._assembler, sample_map, map, self.seed, template, passes_nan, streams
            )
        self._epoch = 0  # of the running iteration, or of the last one
        self._begins_here = True  # the next iteration begins where the library stands
        self._next_epoch: int | None = None  # set_epoch while an iteration runs
        self._iteration = 0  # the number of the iterator that may draw
        self._running = False
        self._begin_lock = threading.Lock()  # two threads that draw first begin once
        self._state: str | None = None  # after the batch the caller has, when the map runs ahead
        self._map_waited = 0.0
        self._last_words: _LastWords | None = None
        _live.add(self)

    # Iterating

    def __iter__(self) -> LoaderIterator:
        core = self._opened()
        self._end_iteration()
        if self._next_epoch is not None:
            self._go_to(self._next_epoch)
        elif not self._begins_here:
            self._go_to(self._epoch + 1)
        elif core.steps_left() == 0 and core.steps() > 0:
            self._go_to(core.position()[0] + 1)  # the state was of an epoch's very end
        self._begins_here, self._next_epoch, self._state = True, None, None
        return LoaderIterator(self, self._iteration)

    def __len__(self) -> int:
        """Batches of a whole epoch: the same on every rank."""
        return self._opened().steps()

    def _opened(self) -> _core.Loader:
        if self._core is None:
            raise RuntimeError("the loader is closed")
        return self._core

    def _go_to(self, epoch: int) -> None:
        core = self._opened()
        if core.position() != (epoch, 0):
            core.seek(epoch, 0)

    def _end_iteration(self) -> None:
        """The iterator that is out there, if any, draws no more."""
        self._iteration += 1
        self._running = False
        if self._stage is not None:
            stage, self._stage = self._stage, None
            stage.close()
            self._map_waited += stage.waited

    def _begin(self) -> None:
        """The first batch is asked for: from here on the epoch counts as begun. An iterator that
        nobody draws from changes nothing."""
        core = self._opened()
        self._epoch = core.position()[0]
        if self._mapper is not None:
            self._state = core.save()
            self._stage = MapStage(
                core,
                self._epoch,
                self._mapper,
                self._map_threads,
                self._stall_seconds,
                self._map_timeout,
            )
        self._begins_here, self._running = False, True

    def _draw(self) -> Any:
        """The next batch; None at the end of the epoch."""
        core = self._opened()
        if self._begins_here:
            with self._begin_lock:
                if self._begins_here:
                    self._begin()
        stage = self._stage
        if stage is None:
            got = core.next(self._epoch)
            return None if got is None else self._assembler.batch(Raw.of(got))
        core.steps()  # says so when this is a forked child, which has no threads
        mapped = stage.next()
        if mapped is None:
            self._state = None  # where the library stands is where the caller stands
            return None
        batch, self._state = mapped
        return batch

    @property
    def epoch(self) -> int:
        """The epoch that runs, or that ran last."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """The next ``iter(loader)`` begins this epoch. After :meth:`load_state_dict`, the epoch of
        the state keeps its position: a loop that calls ``set_epoch`` at the head of each epoch goes
        on where it was."""
        epoch = operator.index(epoch)
        if epoch < 0:
            raise ValueError(f"epochs count from 0; {epoch} is none")
        core = self._opened()
        if self._running:
            self._next_epoch = epoch
        elif not (self._begins_here and core.position()[0] == epoch):
            self._end_iteration()
            core.seek(epoch, 0)
            self._begins_here, self._state = True, None

    # State

    def state_dict(self) -> dict[str, Any]:
        """Where you stand: a few numbers and words, for a checkpoint. After an epoch's last batch
        it is the beginning of the next epoch.

        >>> state = loader.state_dict()
        >>> loader.load_state_dict(state)
        >>> loader.state_dict() == state
        True
        """
        if self._core is None and self._last_words is not None:
            text = self._last_words.state
        else:
            text = self._opened().save() if self._state is None else self._state
        state: dict[str, Any] = json.loads(text)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to where the state was saved. The number of ranks, the batch size and the threads
        may be others than then; another dataset or another order is refused."""
        if not isinstance(state, dict):
            raise TypeError(f"a state is a dict, not {type(state).__name__}")
        core = self._opened()
        self._end_iteration()
        core.load(json.dumps(state))
        self._begins_here, self._next_epoch, self._state = True, None, None

    # Looking

    def stats(self) -> dict[str, Any]:
        """What was delivered, what was waited for (in seconds), and memory, as a dict. ``"device"``
        is a dict of what was done there, or None where batches stay on the CPU."""
        if self._core is None and self._last_words is not None:
            return dict(self._last_words.stats)
        stats = self._opened().stats()
        seconds = stats["seconds"]
        stats["samples_per_second"] = stats["samples"] / seconds if seconds else 0.0
        stats["bytes_per_second"] = stats["bytes"] / seconds if seconds else 0.0
        running = 0.0 if self._stage is None else self._stage.waited
        stats["waits"]["map"] = self._map_waited + running
        return stats

    def record_stream(self, batch: Any, stream: Any) -> None:
        """The stream works on this batch too, or on this tensor of it: its memory is not used again
        before what the stream then holds is done. It waits, from now on, until the batch is there.

        Needed when a batch is used in other streams than the one that was current when it was
        drawn, as with torch's ``Tensor.record_stream``, which does not know this memory.

        Args:
            batch: a batch, or tensors of one; views too.
            stream: a stream of torch or CuPy, or the number of a CUstream.
        """
        if self.device == "cpu":
            return
        use = self._opened().use
        for tensor in tensors_in(batch):
            if not record(tensor, stream, use):
                raise ValueError("the tensor is of no batch of this loader that is still in use")

    @property
    def quarantine(self) -> list[dict[str, Any]]:
        """The bad samples that were replaced: dicts with sample, epoch, substitute, status, key,
        field, object, offset and reason."""
        if self._core is None and self._last_words is not None:
            return list(self._last_words.quarantine)
        return self._opened().quarantine()

    def iterable(self) -> LoaderIterable:
        """A ``torch.utils.data.IterableDataset`` over this loader, for what insists on one. Batches
        are made already: ``DataLoader(loader.iterable(), batch_size=None)``."""
        from ._iterable import LoaderIterable

        return LoaderIterable(self)

    # Closing

    def close(self) -> None:
        """Stops the threads. Batches that you hold stay valid."""
        if self._core is None:
            return
        core = self._core
        try:
            state = json.dumps(self.state_dict())
            self._last_words = _LastWords(state, self.stats(), self.quarantine)
        except (RuntimeError, StokerError):
            pass  # a forked child has no state, and neither has one that another thread draws from
        self._end_iteration()
        self._core = None
        core.close()
        _live.discard(self)

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_core", None) is not None:
            self.close()

    def __reduce__(self) -> Any:
        raise TypeError(
            "a Loader has threads and cannot be pickled; pickle its state_dict(), or its dataset, "
            "and open a Loader in the process that uses it; over its iterable(), a DataLoader "
            "must use num_workers=0"
        )

    def __repr__(self) -> str:
        return f"<stoker.Loader over {self.dataset!r}>"


class _LastWords(NamedTuple):
    """What a closed loader can still tell."""

    state: str
    stats: dict[str, Any]
    quarantine: list[dict[str, Any]]


class LoaderIterator:
    """One epoch's batches."""

    def __init__(self, loader: Loader, iteration: int) -> None:
        self._loader = loader
        self._iteration = iteration
        self._over = False

    def __iter__(self) -> LoaderIterator:
        return self

    def __next__(self) -> Any:
        if self._over:
            raise StopIteration
        loader = self._loader
        if loader._iteration != self._iteration:
            if self._over:  # another thread has just met the end
                raise StopIteration
            raise RuntimeError(
                "this iteration has ended: the loader was iterated anew, given a state, or closed"
            )
        try:
            batch = loader._draw()
        except (BusyError, KeyboardInterrupt):
            raise  # the batch is still to come
        except BaseException:
            self._end()
            raise
        if batch is None:
            self._end()
            raise StopIteration
        return batch

    def _end(self) -> None:
        """The threads of the map need not wait for the next iteration."""
        self._over = True
        if self._loader._iteration == self._iteration:
            self._loader._end_iteration()

    def __del__(self) -> None:
        if not self._over:
            self._end()


def _check_counts(**counts: int | None) -> None:
    for name, count in counts.items():
        if count is not None and operator.index(count) < 0:
            raise ValueError(f"{name} is {count}; it cannot be below 0")


def _any_sample(dataset: Dataset, assembler: Assembler) -> Any:
    """A sample that can be read, in the loader's form: what a batch without any is shaped after."""
    tries = min(len(dataset), 16)
    for i in range(tries):
        try:
            return assembler.sample(dataset._handle.read(i))
        except BadSampleError:
            if i == tries - 1:
                raise


def _read_transforms(transforms: Mapping[str, Chain] | None) -> dict[str, str]:
    """The chain of each field, as text."""
    if transforms is None:
        return {}
    if not isinstance(transforms, Mapping):
        raise TypeError(
            f"transforms is {transforms!r}; it is a dict of fields and what is done with them, "
            'such as {"jpg": [stoker.RandomResizedCrop(224)]}'
        )
    for name in transforms:
        if not isinstance(name, str):
            raise TypeError(f"a field's name is text, not {type(name).__name__}")
    return {name: chain_text(chain) for name, chain in transforms.items()}


def _read_choice(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; it may be {' or '.join(map(repr, choices))}")
    return value


def _read_sizes(batch_size: int | None, global_batch_size: int | None) -> tuple[int, int]:
    if batch_size is not None and global_batch_size is not None:
        raise ValueError("give batch_size (of each rank) or global_batch_size, not both")
    if batch_size is None and global_batch_size is None:
        batch_size = 1
    sizes = operator.index(batch_size or 0), operator.index(global_batch_size or 0)
    if max(sizes) < 1 or min(sizes) < 0:
        raise ValueError("a batch has at least one sample")
    return sizes


def _read_last(last: str | None, drop_last: bool, world_size: int) -> str:
    if drop_last and last not in (None, "drop"):
        raise ValueError(f"drop_last=True and last={last!r} say two things")
    if drop_last:
        return "drop"
    return last or ("short" if world_size == 1 else "mask")


def _read_weights(weights: Any) -> numpy.ndarray | None:
    if weights is None:
        return None
    return numpy.ascontiguousarray(weights, dtype=numpy.float64)
