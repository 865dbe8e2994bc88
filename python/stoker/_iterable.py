"""The loader as a torch IterableDataset. Imports torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch.utils.data

if TYPE_CHECKING:
    from .loader import Loader


class LoaderIterable(torch.utils.data.IterableDataset[Any]):
    """A loader for what insists on an IterableDataset: ``DataLoader(it, batch_size=None)``.

    Worker processes are refused: the loader has threads of its own, which no worker would have,
    and the position of the epoch would be lost with each worker."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        if worker is not None:
            raise RuntimeError(
                f"num_workers={worker.num_workers}, but a Stoker loader reads ahead in threads of "
                "its own: a worker process has none of them, would give each sample once a worker, "
                "and would lose the position that state_dict saves; use num_workers=0"
            )
        return iter(self.loader)

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """See :meth:`Loader.set_epoch`."""
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """See :meth:`Loader.state_dict`."""
        return self.loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See :meth:`Loader.load_state_dict`."""
        self.loader.load_state_dict(state)
