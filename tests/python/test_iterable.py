import pickle

import pytest
import stoker

torch = pytest.importorskip("torch")
DataLoader = torch.utils.data.DataLoader


def test_it_is_an_iterable_dataset_with_a_length(dataset):
    loader = stoker.Loader(dataset, 10, shuffle=True)
    iterable = loader.iterable()
    assert isinstance(iterable, torch.utils.data.IterableDataset)
    assert len(iterable) == len(DataLoader(iterable, batch_size=None)) == 10


def test_a_data_loader_hands_its_batches_on(dataset):
    loader = stoker.Loader(dataset, 10, shuffle=True)
    twin = stoker.Loader(dataset, 10, shuffle=True)
    outer = DataLoader(loader.iterable(), batch_size=None)
    for _ in range(2):
        for one, two in zip(outer, twin, strict=True):
            assert torch.equal(one["npy"], two["npy"])


def test_its_state_is_the_loaders(dataset):
    loader = stoker.Loader(dataset, 10, shuffle=True)
    iterable = loader.iterable()
    next(iter(iterable))
    state = iterable.state_dict()
    assert state == loader.state_dict()
    other = stoker.Loader(dataset, 10, shuffle=True).iterable()
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert len(list(other)) == 9
    other.set_epoch(3)
    assert next(iter(other)).epoch == 3


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("way", "kind"), [("fork", RuntimeError), ("spawn", TypeError)])
def test_worker_processes_are_refused_with_the_reason(dataset, workers, way, kind):
    loader = stoker.Loader(dataset, 10)
    outer = DataLoader(
        loader.iterable(), batch_size=None, num_workers=workers, multiprocessing_context=way
    )
    with pytest.raises(kind, match=r"threads.*use num_workers=0"):
        list(outer)
    assert len(list(loader)) == 10


def test_it_cannot_be_pickled_and_says_why(dataset):
    with pytest.raises(TypeError, match="threads"):
        pickle.dumps(stoker.Loader(dataset).iterable())
