import copy
import pickle

import pytest
import stoker
from stoker import errors


def test_each_error_is_a_stoker_error_and_has_a_status():
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, stoker.StokerError)
        assert isinstance(kind.status, str)


@pytest.mark.parametrize(
    ("status", "builtin"),
    [
        ("NOT_FOUND", FileNotFoundError),
        ("DENIED", PermissionError),
        ("IO", OSError),
        ("MEMORY", MemoryError),
        ("USAGE", ValueError),
        ("SHAPE", ValueError),
        ("UNSUPPORTED", NotImplementedError),
        ("BUSY", RuntimeError),
    ],
)
def test_a_status_becomes_the_exception_that_python_has_for_it(status, builtin):
    error = errors.make_error({"status": status, "message": "words", "object": "a.tar"})
    assert isinstance(error, builtin)
    assert error.status == status
    assert error.object == "a.tar"
    assert str(error) == "words"


def test_a_bad_sample_is_told_by_its_number():
    words = {"status": "TRUNCATED", "message": "m", "sample": 7, "key": "k", "field": "npy"}
    error = errors.make_error(words)
    assert type(error) is stoker.BadSampleError
    assert (error.status, error.sample, error.key, error.field) == ("TRUNCATED", 7, "k", "npy")
    assert error.offset is None


def test_errors_survive_pickling_and_a_rebuild_from_their_text():
    error = stoker.BadSampleError("words", sample=3, status="CORRUPT")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert twin.sample == 3
        assert str(twin) == "words"
    for name in errors.__all__:  # what torch's DataLoader does with a worker's exception
        assert str(getattr(errors, name)("text")) == "text"


def test_a_source_that_is_not_there_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        stoker.open(tmp_path / "none.tar")
    assert isinstance(caught.value, stoker.StokerError)
    assert caught.value.status == "NOT_FOUND"
    assert "none.tar" in str(caught.value)


def test_a_file_that_is_no_tar_is_corrupt(tmp_path):
    path = tmp_path / "page.tar"
    path.write_bytes(b"<html>404</html>" * 100)
    with pytest.raises(stoker.StokerError) as caught:
        stoker.open(path)
    assert caught.value.status in ("CORRUPT", "TRUNCATED")
    assert "page.tar" in str(caught.value)


def test_what_to_do_is_part_of_the_words(dataset):
    with pytest.raises(errors.UsageError, match="CPU") as caught:
        stoker.Loader(dataset, 4, resident=True)
    assert caught.value.remedy in str(caught.value)
    error = errors.make_error({"status": "IO", "message": "m\n  do this", "remedy": "do this"})
    assert str(error) == "m\n  do this"
