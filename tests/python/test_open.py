import os

import numpy
import pytest
import stoker
from shard_making import write_shards, write_tar

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "form",
    [
        lambda folder: folder,
        lambda folder: str(folder),
        lambda folder: str(folder / "shard-*.tar"),
        lambda folder: str(folder / "shard-{0000..0001}.tar"),
        lambda folder: [folder / "shard-0000.tar", str(folder / "shard-0001.tar")],
        lambda folder: "file://" + str(folder),
    ],
)
def test_sources_may_be_paths_globs_braces_lists_and_uris(shards, form):
    ds = stoker.open(form(shards))
    assert len(ds) == 100
    assert list(ds.fields) == ["npy", "cls"]
    assert ds.key(0) == "000000"


def test_no_source_at_all_is_refused():
    with pytest.raises(ValueError, match="no source"):
        stoker.open([])


def test_files_need_no_cache_and_make_none(shards, tmp_path):
    folder = tmp_path / "cache"
    ds = stoker.open(shards, cache=folder, cache_size="1GiB")
    assert len(ds) == 100 and not folder.exists()


@pytest.mark.parametrize("size", ["much", "-1", ""])
def test_a_size_of_the_cache_that_is_none_is_refused(shards, size):
    with pytest.raises(ValueError):
        stoker.open(shards, cache_size=size)


def test_files_and_uris_do_not_mix(shards):
    with pytest.raises(stoker.StokerError, match="not in both"):
        stoker.open([shards / "shard-0000.tar", "s3://bucket/shard-0001.tar"])


def test_a_scheme_without_a_store_is_told_with_those_there_are():
    with pytest.raises(stoker.errors.UnsupportedError, match="ftp") as refused:
        stoker.open("ftp://host/a.tar")
    assert "s3" in refused.value.remedy


def test_fields_are_described(rich):
    fields = stoker.open(rich).fields
    assert fields["npy"].kind == "tensor"
    assert fields["npy"].dtype == "float32"
    assert fields["npy"].shape == (4, 4)
    assert [fields[name].kind for name in ("cls", "txt", "json")] == ["int", "text", "json"]
    assert not fields["npy"].optional


def test_a_tuple_of_fields_makes_tuples_and_a_list_dicts(rich):
    assert isinstance(stoker.open(rich, fields=("npy", "cls"))[3], tuple)
    assert list(stoker.open(rich, fields=["cls", "npy"])[3]) == ["cls", "npy"]
    assert list(stoker.open(rich, fields="cls")[3]) == ["cls"]


def test_a_dict_of_fields_overrides_their_kinds(rich):
    ds = stoker.open(rich, fields={"cls": "bytes", "json": "text", "txt": None})
    assert ds[7] == {"cls": b"7", "json": '{"n": 7}', "txt": "caption 7 ä"}


def test_alternatives_take_the_first_that_is_there_and_optional_ones_may_be_missing(tmp_path):
    write_tar(
        tmp_path / "a.tar",
        [("x", {"jpg": b"J", "cls": 1, "txt": "t"}), ("y", {"png": b"P", "cls": 2})],
    )
    ds = stoker.open(tmp_path / "a.tar", fields=("jpg;png=bytes", "cls", "txt?"))
    assert ds[0] == (b"J", 1, "t")
    assert ds[1] == (b"P", 2, None)


def test_a_missing_field_is_a_bad_sample(tmp_path):
    write_tar(tmp_path / "a.tar", [("x", {"txt": "t", "cls": 1}), ("y", {"cls": 2})])
    ds = stoker.open(tmp_path / "a.tar", fields=("txt", "cls"))
    with pytest.raises(stoker.BadSampleError) as caught:
        ds[1]
    assert caught.value.sample == 1
    assert caught.value.field == "txt"
    assert caught.value.key == "y"


def test_a_field_that_no_sample_has_is_refused(shards):
    with pytest.raises(stoker.StokerError, match="nope"):
        stoker.open(shards, fields=("nope",))


@pytest.mark.parametrize("fields", [[], (), {}])
def test_an_empty_choice_of_fields_is_refused(shards, fields):
    with pytest.raises(ValueError, match="empty"):
        stoker.open(shards, fields=fields)


@pytest.mark.parametrize(
    "dtype", ["float16", "f16", "f2", torch.float16, numpy.float16, numpy.dtype("<f2")]
)
def test_raw_arrays_take_the_dtypes_of_torch_and_numpy(tmp_path, dtype):
    array = numpy.arange(60, dtype=numpy.float16).reshape(10, 2, 3)
    path = tmp_path / "rows.bin"
    array.tofile(path)
    ds = stoker.open(path, format="raw", dtype=dtype, shape=(2, 3), as_="numpy")
    assert len(ds) == 10
    (name,) = ds.fields
    numpy.testing.assert_array_equal(ds[4][name], array[4])


def test_an_unknown_dtype_is_refused(tmp_path):
    with pytest.raises(ValueError, match="float17"):
        stoker.open(tmp_path, format="raw", dtype="float17", shape=(1,))


def test_rows_of_an_npy_file_are_samples(tmp_path):
    array = numpy.random.default_rng(0).integers(0, 255, (12, 3, 5), dtype=numpy.uint8)
    numpy.save(tmp_path / "rows.npy", array)
    ds = stoker.open(tmp_path / "rows.npy", as_="numpy")
    assert len(ds) == 12
    (name,) = ds.fields
    numpy.testing.assert_array_equal(ds[11][name], array[11])


def test_class_folders_give_classes(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for i in range(3):
            (tmp_path / name / f"{i}.txt").write_text(f"{name}{i}")
    ds = stoker.open(tmp_path)
    assert ds.classes == ["cat", "dog"]
    assert len(ds) == 6
    assert [(s["txt"], s["cls"]) for s in ds][2:4] == [("cat2", 0), ("dog0", 1)]


def test_the_index_may_be_kept_elsewhere(tmp_path):
    folder = write_shards(tmp_path / "data", 10)
    ds = stoker.open(folder, index=tmp_path / "my.index")
    assert ds.index_path == str(tmp_path / "my.index")
    assert os.path.getsize(ds.index_path) > 0


def test_a_changed_shard_is_indexed_anew(tmp_path):
    folder = write_shards(tmp_path, 10)
    first = stoker.open(folder)
    write_shards(tmp_path, 20)
    second = stoker.open(folder)
    assert (len(first), len(second)) == (10, 20)
    assert first.fingerprint != second.fingerprint


def test_the_fingerprint_does_not_depend_on_the_folder(tmp_path):
    one = stoker.open(write_shards(tmp_path / "one", 10))
    two = stoker.open(write_shards(tmp_path / "two", 10))
    assert one.fingerprint == two.fingerprint
    assert len(one.fingerprint) == 32


def test_progress_goes_to_a_callable_and_its_exception_ends_the_work(tmp_path):
    folder = write_shards(tmp_path, 200, shards=20)

    class Enough(Exception):
        pass

    def stop(what, unit, done, total, size):
        raise Enough(what)

    seen = []
    stoker.open(folder, reindex=True, progress=lambda *told: seen.append(told))
    if not seen:
        pytest.skip("indexing was over before anything was told")
    with pytest.raises(Enough):
        stoker.open(folder, reindex=True, progress=stop)
    assert all(len(told) == 5 for told in seen)


def test_nothing_is_drawn_when_standard_error_is_a_pipe(tmp_path, run_python):
    folder = write_shards(tmp_path / "data", 50, shards=10)
    done = run_python("import sys, stoker; stoker.open(sys.argv[1])", folder)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout == ""


def test_a_bar_is_drawn_on_a_terminal_and_taken_away(capsys, monkeypatch):
    import sys

    from stoker import _context

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with _context.progress_shown(None):
        bar = _context._local.progress
        bar.shows_from = 0
        _context._tell_progress("indexing", "shards", 3, 10, 5_000_000)
    drawn = capsys.readouterr().err
    assert "indexing" in drawn
    assert "3/10 shards" in drawn
    assert drawn.endswith("\r")
