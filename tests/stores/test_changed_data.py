"""An index never stands for other data than it was made of; and names that mean two things."""

import pytest
from store_runs import ACCOUNT

PLACES = pytest.mark.parametrize(
    ("kind", "folder"),
    [("s3", "s3://out/set"), ("az", f"az://{ACCOUNT}/out/set"),
     ("abfss", f"abfss://out@{ACCOUNT}.dfs.core.windows.net/set")],
)  # fmt: skip


def put(server, lake, *numbers, under="out/set"):
    """Shards of the lake, by number, one after the other."""
    for at, number in enumerate(numbers):
        body = (lake / "bucket" / "train" / f"shard-000{number}.tar").read_bytes()
        server.objects.put(f"{under}/shard-000{at}.tar", body)


def same(lake, folder, *numbers):
    """The same shards in a folder of this machine."""
    folder.mkdir()
    for at, number in enumerate(numbers):
        body = (lake / "bucket" / "train" / f"shard-000{number}.tar").read_bytes()
        (folder / f"shard-000{at}.tar").write_bytes(body)
    return folder


CHANGES = {
    "replaced": (0, 2),
    "appended": (0, 1, 2),
    "removed": (0,),
    "in another order": (1, 0),
}


@PLACES
@pytest.mark.parametrize("change", CHANGES)
def test_an_index_of_other_data_is_made_anew(place, lake, tmp_path, kind, folder, change):
    server, stoker, _ = place(kind)
    put(server, lake, 0, 1)
    stoker("index", folder)  # in the user's cache, and beside the data
    put(server, lake, *CHANGES[change])
    if change == "removed":
        server.objects.delete("out/set/shard-0001.tar")
    expected = stoker.digest(same(lake, tmp_path / "here", *CHANGES[change]))
    fresh = stoker.with_environment(XDG_CACHE_HOME=str(stoker.home / "fresh"))
    assert fresh.digest(folder) == expected  # from the index beside the data
    told = stoker("stream", folder, "--batch-size", 8, "--json")  # from the one that was kept
    assert "made anew" in told.stderr and f'"{expected}"' in told.stdout
    # written there anew, others take it
    stoker("index", folder)
    other = stoker.with_environment(XDG_CACHE_HOME=str(stoker.home / "other"))
    again = other("stream", folder, "--batch-size", 8, "--json")
    assert "made anew" not in again.stderr and f'"{expected}"' in again.stdout


def test_a_shard_that_is_cut_short_is_never_read_by_the_old_index(place, lake):
    server, stoker, _ = place("s3")
    put(server, lake, 0, 1)
    stoker("index", "s3://out/set")
    whole = bytes(server.objects.made["out/set/shard-0001.tar"].body)
    server.objects.put("out/set/shard-0001.tar", whole[: len(whole) // 2 - 100])
    told = stoker.fails("s3://out/set")
    assert "shard-0001.tar" in told


@PLACES
def test_a_name_that_is_an_object_and_a_folder(place, lake, tmp_path, kind, folder):
    server, stoker, _ = place(kind)
    put(server, lake, 0, 1)
    body = (lake / "bucket" / "train" / "shard-0002.tar").read_bytes()
    server.objects.put("out/set", body)
    here = stoker.digest(same(lake, tmp_path / "here", 0, 1))
    assert stoker.digest(f"{folder}/") == here
    assert stoker.digest(folder) == stoker.digest(lake / "bucket" / "train" / "shard-0002.tar")
    server.objects.put("out/set", b"")  # what some tools leave for a folder
    assert stoker.digest(folder) == here


@PLACES
def test_slashes_at_the_end_mean_the_same_data_and_index(place, lake, kind, folder):
    server, stoker, _ = place(kind)
    put(server, lake, 0, 1)
    first = stoker.json("index", folder)
    again = stoker.json("index", f"{folder}/")
    assert first["path"] == again["path"] and not again["built"]


def test_a_shard_of_no_bytes_is_an_error_as_on_disk(place, lake, tmp_path):
    server, stoker, _ = place("s3")
    put(server, lake, 0)
    server.objects.put("out/set/shard-0001.tar", b"")
    here = same(lake, tmp_path / "here", 0)
    (here / "shard-0001.tar").write_bytes(b"")
    status = stoker("stream", here, "--batch-size", 8, status=None).returncode
    assert stoker("stream", "s3://out/set", "--batch-size", 8, status=None).returncode == status


def test_ten_thousand_names_in_braces_are_opened(place, lake):
    server, stoker, _ = place("s3")
    body = b"\x93NUMPY\x01\x00v\x00" + (
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (8,), }".ljust(117) + b"\n" + bytes(8)
    )
    for number in range(10_000):
        server.objects.made[f"out/set/{number:05}.npy"] = type(server.objects.put("out/x", body))(
            body, '"e"', 0
        )
    server.objects.delete("out/x")
    assert stoker.json("index", "s3://out/set/{00000..09999}.npy")["samples"] == 10_000
