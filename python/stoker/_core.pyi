"""The C library, as the package uses it. Not for users: see stoker.open and stoker.Loader."""

from collections.abc import Callable
from typing import Any, NoReturn, TypedDict

class Tensor:
    """Memory of a batch or a sample, shown through DLPack, the buffer protocol (on the CPU) and
    CUDA's array interface (on a GPU)."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def address(self) -> int: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def capsule(self) -> Any: ...
    def to_host(self) -> Tensor: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Context:
    """What the library calls back. command: the hooks of the `stoker` command instead."""

    def __new__(
        cls,
        progress: Callable[[str, str, int, int, int], Any] | None = None,
        notice: Callable[[str], Any] | None = None,
        write_table: Callable[[str, dict[str, Any]], Any] | None = None,
        # (sources, columns, keys, memory, entity) -> (tables, rows)
        open_tables: Callable[[list[str], list[str] | None, list[str] | None, int, str | None], Any]
        | None = None,
        make_report: Callable[[list[str], str], Any] | None = None,
        command: bool = False,
    ) -> Context: ...
    def load_plugin(self, path: bytes, /) -> None: ...

class _About(TypedDict):
    objects: int
    skipped: int
    index: str

class Dataset:
    """An opened dataset."""

    def __new__(
        cls,
        context: Context,
        sources: list[bytes],
        fields: list[bytes] | None = None,
        format: str | None = None,
        dtype: str | None = None,
        shape: tuple[int, ...] | None = None,
        chunk_limit: int | None = None,
        index: str | None = None,
        reindex: bool = False,
        windows: dict[str, Any] | None = None,
        cache: str | None = None,
        cache_size: int = 0,
    ) -> Dataset: ...
    def __len__(self) -> int: ...
    # name, kind, optional, dtype, shape, longest value in bytes, media
    def fields(
        self,
    ) -> list[tuple[str, str, bool, str | None, tuple[int, ...] | None, int, str | None]]: ...
    def classes(self) -> list[str]: ...
    def fingerprint(self) -> bytes: ...
    def about(self) -> _About: ...
    def series(self) -> dict[str, Any] | None: ...
    def entity(self, number: int, /) -> tuple[str, int, int]: ...
    def numbers(self) -> bytes: ...
    def key(self, position: int, /) -> str: ...
    def find(self, key: bytes, /) -> int: ...
    def place(self, position: int, field: int, /) -> tuple[str, int | None, int | None] | None: ...
    # one a field: Tensor, int, str, bytes (json too), or None
    def read(self, position: int, /) -> list[Any]: ...
    def bytes(self, position: int, field: int, /) -> bytes: ...
    def split(self, shares: list[float], part: int, seed: int, /) -> Dataset: ...
    def range(self, first: int, count: int, /) -> Dataset: ...
    def select(self, positions: Any, /) -> Dataset: ...

class Loader:
    """Draws batches from a dataset."""

    def __new__(
        cls,
        dataset: Dataset,
        *,
        batch_size: int = 0,
        global_batch_size: int = 0,
        shuffle: bool = False,
        order: str = "auto",
        reach: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 0,
        last: str = "auto",
        bad: str = "raise",
        ragged: str = "error",
        memory: int = 0,
        threads: int | None = None,
        local_rank: int = 0,
        local_world_size: int = 0,
        depth: int | None = None,
        io: str = "auto",
        weights: Any = None,
        pin: bool = True,
        stall_seconds: float = 0,
        trace: str | None = None,
        transforms: list[bytes] | None = None,  # a field, its chain, the next field ...
        batch_transforms: str | None = None,
        device: str = "cpu",
        device_number: int = 0,
        device_memory: int = 0,
        resident: str = "no",
        decode: str = "auto",
    ) -> Loader: ...
    # epoch, step, end, count, real, samples (int64), mask, fields; None at the end of the epoch. A
    # field is (value, lengths, present, offsets, whether its chain pads); its value is a Tensor, or
    # a list of Tensor, str, bytes or None.
    def next(
        self, epoch: int, /
    ) -> (
        tuple[
            int,
            int,
            int,
            int,
            int,
            bytes,
            Tensor | None,
            list[tuple[Tensor | list[Any], Tensor | None, Tensor | None, Tensor | None, bool]],
        ]
        | None
    ): ...
    def seek(self, epoch: int, position: int, /) -> None: ...
    def position(self) -> tuple[int, int]: ...
    def steps(self) -> int: ...
    def steps_left(self) -> int: ...
    def save(self) -> str: ...
    def load(self, text: str, /) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def quarantine(self) -> list[dict[str, Any]]: ...
    def use(self, address: int, stream: int, /) -> bool: ...
    def interrupt(self, on: bool, /) -> None: ...
    def close(self) -> None: ...

class Pipeline:
    """A chain of transforms, run on one value."""

    def __new__(cls, context: Context, chain: bytes, media: str = "tensor") -> Pipeline: ...
    # -> value, media, rate (0: not known), frames or points that are not padding (-1: all are).
    # dtype None: data is encoded bytes.
    def run(
        self,
        data: Any,
        dtype: str | None,
        shape: tuple[int, ...],
        seed: int,
        epoch: int,
        sample: int,
        /,
    ) -> tuple[Tensor, str, float, int]: ...
    def text(self) -> str: ...

def version() -> str: ...
def device_count() -> int: ...
def device_info(number: int, /) -> dict[str, Any]: ...
def device_sample(number: int, /) -> dict[str, Any]: ...
def device_folders(folders: bytes, /) -> None: ...

# name, help, media, whether it is of a batch, arguments: (name, type, default, choices)
def transforms(
    context: Context, /
) -> list[tuple[str, str, list[str], bool, list[tuple[str, str, str | None, str | None]]]]: ...
def parse_dtype(text: str, /) -> str | None: ...
def activity_start(device: int, bin_ns: int, /) -> Any: ...
def activity_read(recording: Any, /) -> dict[str, Any]: ...
def activity_stop(recording: Any, /) -> None: ...
def remote_get(context: Context, uri: bytes, most: int, /) -> bytes: ...
def remote_open(context: Context, uris: list[bytes], /) -> Any: ...
def remote_list(files: Any, /) -> list[tuple[str, int, str | None]]: ...
def remote_read(files: Any, number: int, offset: int, length: int, /) -> bytes: ...
def remote_stop(files: Any, /) -> None: ...
def watch_open(
    context: Context, trace: bytes | None, trace_bytes: int, stack_hz: int, /
) -> Any: ...
def watch_folder(watch: Any, /) -> str: ...
def watch_finish(watch: Any, /) -> tuple[str, str]: ...
def watch_close(watch: Any, /) -> None: ...
def main(context: Context, arguments: list[bytes], /) -> int: ...
def pack_series(
    context: Context,
    tables: Any,  # gives (name: bytes, an object with __arrow_c_stream__)
    rows: int,
    own_names: bool,  # a table's name is its entity's, not a file's
    out: bytes,
    *,
    entity: str | None = None,
    time: str | None = None,
    dtype: str | None = None,
    missing: str = "error",
    scaler: str = "standard",
    scale: str = "stored",
    fit_on: str | None = None,
    split: str | None = None,
    window: int | None = None,
    horizon: int | None = None,
    stride: int | None = None,
    gap: int | None = None,
    memory: int | None = None,
    threads: int | None = None,
    append: bool = False,
    force: bool = False,
    features: list[bytes] | None = None,
    labels: list[bytes] | None = None,
    statics: list[bytes] | None = None,
) -> dict[str, Any]: ...
def rescale_series(context: Context, folder: bytes, scaler: str, fit_on: str | None, /) -> None: ...
