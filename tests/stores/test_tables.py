"""Tables in stores: the series that is packed of them is, byte for byte, that of the same files."""

import bz2
import gzip
import io
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
from store_runs import ACCOUNT, environment_of

stoker = pytest.importorskip("stoker")
pyarrow = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
feather = pytest.importorskip("pyarrow.feather")
orc = pytest.importorskip("pyarrow.orc")
parquet = pytest.importorskip("pyarrow.parquet")
remote_file = pytest.importorskip("stoker._remote_file")

CLOUDS = ["s3", "az", "abfss", "gs"]
MARK = "XyZZy"
SMALL = {"memory": "32MiB"}  # of which a quarter is for reading: what counts as large is less


def folder_uri(kind, name):
    return {
        "s3": f"s3://bucket/{name}",
        "az": f"az://{ACCOUNT}/bucket/{name}",
        "abfss": f"abfss://bucket@{ACCOUNT}.dfs.core.windows.net/{name}",
        "gs": f"gs://bucket/{name}",
    }[kind]


def made(rows, columns=4, seed=0):
    dice = numpy.random.default_rng(seed)
    features = {f"f{i}": dice.normal(size=rows) for i in range(columns)}
    return pyarrow.table({"day": numpy.arange(rows), **features})


def write_stream(table, path):
    with pyarrow.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=5000)


def write_packed(pack, table, path):
    buf = io.BytesIO()
    csv.write_csv(table, buf)
    path.write_bytes(pack(buf.getvalue()))


WRITERS = {
    "parquet": parquet.write_table,
    "csv": csv.write_csv,
    "csv.gz": lambda table, path: write_packed(gzip.compress, table, path),
    "csv.bz2": lambda table, path: write_packed(bz2.compress, table, path),
    "csv.zst": lambda table, path: write_packed(pyarrow.Codec("zstd").compress, table, path),
    "orc": orc.write_table,
    "arrow": feather.write_feather,
    "arrows": write_stream,
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A lake whose bucket holds, in a folder for each format, two small tables and a large one."""
    root = tmp_path_factory.mktemp("tables")
    for suffix, write in WRITERS.items():
        folder = root / "bucket" / suffix
        folder.mkdir(parents=True)
        write(made(90_000), folder / f"large.{suffix}")
        write(made(50, seed=1), folder / f"one.{suffix}")
        write(made(70, seed=2), folder / f"two.{suffix}")
    parquet.write_table(made(200_000, 12), root / "bucket" / "wide.parquet", row_group_size=100_000)
    parquet.write_table(made(60_000, 12), root / "bucket" / "crumbs.parquet", row_group_size=700)
    return root


@pytest.fixture
def remote(place, tables, monkeypatch):
    """remote(kind): a server of the tables; this process's environment leads to it."""

    def make(kind="s3", root=tables, **options):
        server, command, _ = place(kind, root=root, **options)
        server.command = command
        variables = {**environment_of(kind, server), "HOME": str(command.home)}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return server

    return make


def pack(sources, out, **options):
    stoker.pack_series(sources, out, time="day", **options)
    return {path.name: path.read_bytes() for path in out.iterdir()}


def same(there, here, tmp_path, **options):
    """Both sources are packed to the same bytes; returns the series' entities."""
    remote = pack(there, tmp_path / "there", **options)
    local = pack(here, tmp_path / "here", **options)
    assert remote.keys() == local.keys()
    for name in local:
        assert remote[name] == local[name], name
    return list(stoker.open(tmp_path / "here", window=2).entities)


# What is the same


@pytest.mark.parametrize("suffix", WRITERS)
def test_tables_of_a_store_become_the_series_of_the_files(remote, tables, tmp_path, suffix):
    remote("s3")
    here = tables / "bucket" / suffix
    entities = same(f"s3://bucket/{suffix}", here, tmp_path, **SMALL)
    assert entities == ["large", "one", "two"]


@pytest.mark.parametrize("kind", CLOUDS)
@pytest.mark.parametrize("memory", ["16MiB", "256MiB"])
def test_every_store_serves_tables(remote, tables, tmp_path, kind, memory):
    remote(kind)
    same(f"{folder_uri(kind, 'parquet')}/", tables / "bucket" / "parquet", tmp_path, memory=memory)


def test_a_real_imitation_of_s3_serves_tables(moto, tables, tmp_path, monkeypatch):
    moto.fill("tables", tables / "bucket")
    for name, value in moto.environment().items():
        monkeypatch.setenv(name, value)
    same("s3://tables/parquet", tables / "bucket" / "parquet", tmp_path, **SMALL)


@pytest.mark.parametrize("suffix", ["parquet", "csv.gz"])
def test_a_web_server_serves_tables_that_are_named(remote, tables, tmp_path, suffix):
    url = f"{remote('http').url}/bucket/{suffix}"
    here = [tables / "bucket" / suffix / f"{name}.{suffix}" for name in ("two", "large", "one")]
    there = f"{url}/{{two,large,one}}.{suffix}?version=3"
    assert same(there, here, tmp_path, **SMALL) == ["two", "large", "one"]


def test_one_object_a_glob_braces_and_a_list_mean_what_they_do_of_files(remote, tables, tmp_path):
    remote("s3")
    here, there = tables / "bucket" / "csv", "s3://bucket/csv"
    cases = {
        f"{there}/two.csv": [here / "two.csv"],
        f"{there}/*o*.csv": [here / "one.csv", here / "two.csv"],
        f"{there}/{{two,one}}.csv": [here / "two.csv", here / "one.csv"],
        "s3://bucket/{csv/one,csv.gz/two}.*": [here / "one.csv", here.parent / "csv.gz/two.csv.gz"],
    }
    for number, (uri, files) in enumerate(cases.items()):
        (tmp_path / str(number)).mkdir()
        same(uri, files, tmp_path / str(number))
    mixed = [f"{there}/two.csv", here / "one.csv", "s3://bucket/csv/large.csv"]
    assert same(mixed, [here / "two.csv", here / "one.csv", here / "large.csv"], tmp_path) == [
        "two",
        "one",
        "large",
    ]


def test_entities_can_be_given_to_objects(remote, tables, tmp_path):
    remote("s3")
    names = {"A": "two", "B": "one"}
    there = {entity: f"s3://bucket/orc/{name}.orc" for entity, name in names.items()}
    here = {entity: tables / "bucket" / "orc" / f"{name}.orc" for entity, name in names.items()}
    assert same(there, here, tmp_path) == ["A", "B"]
    with pytest.raises(ValueError, match="A is s3://bucket/orc, which is more than one file"):
        pack({"A": "s3://bucket/orc", "B": there["B"]}, tmp_path / "out")


@pytest.mark.parametrize("kind", CLOUDS)
def test_folders_are_walked_as_those_of_this_machine(remote, tmp_path, kind):
    root = tmp_path / "lake"
    names = ["b/2.parquet", "b.parquet", "b-1.parquet", "a.parquet", "c/d/e.parquet"]
    passed_over = ["_SUCCESS", ".hidden.parquet", "_old/x.parquet", "c/_metadata", "c/.x/y.txt"]
    for number, name in enumerate(names + passed_over):
        path = root / "bucket" / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(made(20, seed=number), path)
    remote(kind, root=root)
    entities = same(folder_uri(kind, "set"), root / "bucket" / "set", tmp_path)
    assert entities == ["a", "2", "b-1", "b", "e"]
    # with others beside it, it is a folder all the same
    several = [folder_uri(kind, "set/{b,c}"), folder_uri(kind, "set/a.parquet")]
    files = [root / "bucket" / "set" / name for name in ("b", "c", "a.parquet")]
    (tmp_path / "several").mkdir()
    assert same(several, files, tmp_path / "several") == ["2", "e", "a"]


def test_the_command_packs_tables_of_a_store(remote, tables, tmp_path):
    server = remote("s3")
    words = ("--to", "series", "--time", "day", "--memory", "32MiB")
    for source, out in [("s3://bucket/parquet", "there"), (tables / "bucket/parquet", "here")]:
        done = command(server, "pack", source, "-o", tmp_path / out, *words)
        assert done.returncode == 0, done.stderr
    for path in (tmp_path / "here").iterdir():
        assert path.read_bytes() == (tmp_path / "there" / path.name).read_bytes(), path


def command(server, *words):
    return subprocess.run(
        [sys.executable, "-m", "stoker", *map(str, words)],
        env=server.command.environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_progress_knows_how_many_rows_there_are(remote, tmp_path):
    remote("s3")
    told = []
    pack("s3://bucket/parquet", tmp_path / "out", progress=lambda *words: told.append(words))
    assert {total for _, unit, _, total, _ in told if unit == "rows"} == {90_120}


# How it is read


@pytest.mark.parametrize(("memory", "largest"), [("32MiB", 1 << 20), ("256MiB", 8 << 20)])
def test_of_a_large_parquet_file_only_columns_that_are_wanted_come(
    remote, tables, tmp_path, memory, largest
):
    server = remote("s3")
    here = tables / "bucket" / "wide.parquet"
    server.forget()
    same("s3://bucket/wide.parquet", here, tmp_path, features=["f3", "f7"], memory=memory)
    footer = parquet.read_metadata(here)
    wanted = [i for i, name in enumerate(footer.schema.names) if name in ("day", "f3", "f7")]
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    size = sum(group.column(i).total_compressed_size for group in groups for i in wanted)
    reads = server.reads("wide.parquet")
    assert sum(read.sent for read in reads) <= size + 4 * (64 << 10)  # and footers
    assert max(read.sent for read in reads) <= largest
    assert len(reads) <= 64


def test_a_large_file_is_fetched_once_and_not_in_crumbs(remote, tables, tmp_path):
    server = remote("s3")
    for suffix in ("csv", "arrow", "arrows", "orc"):
        server.forget()
        name = f"large.{suffix}"
        pack(f"s3://bucket/{suffix}/{name}", tmp_path / suffix, **SMALL)
        size = (tables / "bucket" / suffix / name).stat().st_size
        sent = [read.sent for read in server.reads(name)]
        assert sum(sent) < 1.8 * size and len(sent) < 2.5 * size / (64 << 10) + 4, suffix


@pytest.mark.parametrize("memory", ["32MiB", "64MiB"])
def test_many_small_row_groups_come_together_and_once(remote, tables, tmp_path, memory):
    server = remote("s3")
    here = tables / "bucket" / "crumbs.parquet"
    same("s3://bucket/crumbs.parquet", here, tmp_path, memory=memory)
    sent = [read.sent for read in server.reads("crumbs.parquet")]
    assert sum(sent) <= 1.2 * here.stat().st_size and len(sent) <= 30


class Slow:
    """Bytes that are fetched by ranges; how many are held or on their way at once is counted."""

    def __init__(self, size):
        self.data = numpy.random.default_rng(0).bytes(size)
        self.reads = []

    def __call__(self, offset, length):
        self.reads.append((offset, length))
        assert 0 <= offset and offset + length <= len(self.data) and length > 0
        return self.data[offset : offset + length]


@pytest.fixture
def pool():
    with ThreadPoolExecutor(4) as made:
        yield made


@pytest.mark.parametrize("plan", ["none", "stream", "jumps", "lanes"])
def test_a_remote_file_reads_as_a_file_does(pool, plan):
    slow = Slow(100_000)
    file = remote_file.RemoteFile(slow, len(slow.data), pool, pytest.fail)
    if plan == "stream":
        file.expect_stream(4096, 40_000)
    elif plan == "jumps":
        file.expect_jumps(4096, 20_000)
    elif plan == "lanes":
        steps = [[[(at, at + 700), (at + 900, at + 1000)] for at in range(base, base + 9000, 1000)]
                 for base in (500, 30_000, 60_500)]  # fmt: skip
        file.expect([remote_file.Lane(lane) for lane in steps])
    real = io.BytesIO(slow.data)
    dice = numpy.random.default_rng(1)
    for _ in range(300):
        whence, at = int(dice.integers(3)), int(dice.integers(-5000, 5000))
        if whence == os.SEEK_SET or real.tell() + at < 0:
            whence, at = os.SEEK_SET, int(dice.integers(110_000))
        if whence == os.SEEK_END:
            at = -abs(at)
        assert file.seek(at, whence) == real.seek(at, whence)
        count = int(dice.integers(9000))
        assert file.read(count) == real.read(count)
    file.seek(0)
    assert file.readall() == slow.data


def test_a_stream_is_fetched_once_and_held_in_part(pool):
    slow = Slow(1 << 20)
    file = remote_file.RemoteFile(slow, len(slow.data), pool, pytest.fail)
    file.expect_stream(1 << 16, 8 << 16)
    whole, held = b"", []
    while some := file.read(10_000):
        whole += some
        held.append(len(file._lanes[0]._held))
    assert held[0] == 4 and max(held) == 8  # few at first
    assert whole == slow.data
    assert sorted(slow.reads) == [(at, 1 << 16) for at in range(0, 1 << 20, 1 << 16)]


def test_windows_that_were_used_are_kept_as_far_as_they_fit(pool):
    slow = Slow(1 << 20)
    file = remote_file.RemoteFile(slow, len(slow.data), pool, pytest.fail)
    file.expect_jumps(1 << 12, 20 << 12)
    for _ in range(3):
        for number in range(20):
            file.seek(number * 50_000)
            file.read(100)
    assert len(slow.reads) == 20
    for number in range(10):
        file.seek(number * 100_000 + 40_000)
        file.read(100)
        assert len(file._lanes[0]._held) <= 21


def test_a_footer_that_lies_leads_to_no_read_outside_the_file(remote, tmp_path):
    """The sizes of columns are from outside."""

    class Column:
        data_page_offset, dictionary_page_offset = 1 << 60, -5
        total_compressed_size = 1 << 62
        path = "f"

    class Footer:
        num_columns = num_row_groups = 1
        schema = row_group = None

    Footer.schema = type("S", (), {"column": staticmethod(lambda _: Column)})
    Footer.row_group = staticmethod(lambda _: Footer.schema)
    for room in (8, 1 << 20):
        (lane,) = remote_file.parquet_lanes(Footer, None, 1 << 17, room, 1000)
        assert all(0 <= start <= end <= 1 << 17 for step in lane.steps for start, end in step)


# What goes wrong


def refused(sources, tmp_path, kind, *words, **options):
    """The error that packing ends with. It leaves nothing behind."""
    with pytest.raises(kind) as caught:
        pack(sources, tmp_path / "out", **options)
    for word in words:
        assert word in str(caught.value)
    assert MARK not in str(caught.value) and MARK not in str(caught.value.object)
    assert list(tmp_path.glob("*out*")) == []
    return caught.value


def test_what_is_not_there_is_told_by_its_uri(remote, tmp_path):
    remote("s3")
    for name in ("none.parquet", "none/", "none*.parquet"):
        refused(f"s3://bucket/{name}", tmp_path, stoker.errors.NotFoundError, f"s3://bucket/{name}")
    url = f"{remote('http').url}/bucket/none.parquet"
    refused(url, tmp_path, stoker.errors.NotFoundError, url)


def test_a_web_server_cannot_list_and_the_error_says_so(remote, tmp_path):
    url = remote("http").url
    for name in ("parquet/", "parquet/*.parquet"):
        error = refused(f"{url}/bucket/{name}", tmp_path, NotImplementedError, "cannot be asked")
        assert "{" in error.remedy


def test_folders_without_tables_are_refused(remote, tmp_path):
    server = remote("s3")
    server.objects.put("bucket/hidden/_SUCCESS", b"")
    server.objects.put("bucket/dots/.x", b"1")
    server.objects.put("bucket/notes/a.txt", b"1")
    server.objects.put("bucket/series/x/all_features.mmap", b"1")
    missing = stoker.errors.NotFoundError
    refused("s3://bucket/hidden", tmp_path, missing, "holds no table", "s3://bucket/hidden")
    refused("s3://bucket/dots", tmp_path, missing, "s3://bucket/dots")
    odd = stoker.errors.UnsupportedError
    refused("s3://bucket/notes", tmp_path, odd, "by its name", "s3://bucket/notes/a.txt")
    refused("s3://bucket/series", tmp_path, odd, "a series", "s3://bucket/series/x")
    refused(f"ftp://host/a.parquet?sig={MARK}", tmp_path, odd, "no store for ftp://")


@pytest.mark.parametrize(
    "name", ["az://account/box/a.parquet", "http://127.0.0.1:1/a.csv", "s3://bucket/a.csv"]
)
def test_a_signature_in_a_uri_is_refused_and_not_repeated(remote, tmp_path, name):
    server = remote("s3")
    source = f"{name}?sv=2022&sig={MARK}"
    refused(source, tmp_path, stoker.StokerError, **SMALL)
    done = command(server, "pack", source, "-o", tmp_path / "out", "--to", "series")
    assert done.returncode != 0 and MARK not in done.stdout + done.stderr
    assert done.stderr.startswith("stoker: ")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "orc", "arrow"])
@pytest.mark.parametrize("after", [0, 4])
def test_an_object_that_changes_meanwhile_is_an_error(remote, tmp_path, suffix, after):
    server = remote("s3")
    server.fault("change", f"*large.{suffix}", method="GET", after=after, times=1)
    name = f"s3://bucket/{suffix}/large.{suffix}"
    error = refused(name, tmp_path, stoker.errors.StaleError, "changed meanwhile", name, **SMALL)
    assert "pack again" in error.remedy


@pytest.mark.parametrize("suffix", ["parquet", "csv", "orc", "arrow"])
def test_an_object_that_vanishes_or_is_withheld_is_an_error(remote, tmp_path, suffix):
    server = remote("s3")
    kinds = {404: stoker.errors.NotFoundError, 403: stoker.errors.DeniedError}
    for status, kind in kinds.items():
        server.forget()
        code = {404: "NoSuchKey", 403: "AccessDenied"}[status]
        server.fault("status", f"*large.{suffix}", method="GET", after=3, status=status, code=code)
        name = f"s3://bucket/{suffix}/large.{suffix}"
        error = refused(name, tmp_path, kind, name, **SMALL)
        assert error.remedy
    server.forget()
    server.fault("status", query="list-type", status=403, code="AccessDenied")
    refused("s3://bucket/parquet/", tmp_path, stoker.errors.DeniedError, "s3://bucket/parquet")


@pytest.mark.parametrize("suffix", ["parquet", "csv.zst", "orc", "arrows"])
def test_connections_that_break_are_made_again(remote, tables, tmp_path, suffix):
    server = remote("s3")
    server.fault("cut", f"*large.{suffix}", method="GET", times=3, after=1, reset=True)
    same(f"s3://bucket/{suffix}", tables / "bucket" / suffix, tmp_path, **SMALL)
    assert any("cut" in request.faults for request in server.requests)


def test_a_store_that_goes_away_ends_the_packing(remote, tmp_path, monkeypatch):
    server = remote("s3")
    monkeypatch.setenv("STOKER_TIMEOUT", "2")
    server.fault("reset", "*large.parquet", method="GET", after=6)
    begun = time.monotonic()
    refused("s3://bucket/parquet", tmp_path, OSError, "s3://bucket/parquet/large", **SMALL)
    assert time.monotonic() - begun < 40


@pytest.mark.parametrize("suffix", ["parquet", "orc", "arrow"])
def test_an_object_that_is_no_table_is_told_as_a_file_is(remote, tmp_path, suffix):
    server = remote("s3")
    for size in (0, 10, 4 << 20):
        server.objects.put(f"bucket/bad.{suffix}", b"x" * size)
        words = ("s3://bucket/bad", "write the file anew")
        refused(f"s3://bucket/bad.{suffix}", tmp_path, stoker.errors.CorruptError, *words, **SMALL)


@pytest.mark.parametrize("how", ["command", "package"])
@pytest.mark.parametrize("where", ["list", "first", "middle"])
def test_ctrl_c_ends_packing_that_waits_for_a_store(remote, tmp_path, how, where):
    server = remote("s3")
    if where == "list":
        server.fault("delay", query="list-type", seconds=60)
    else:
        after = 0 if where == "first" else 8
        server.fault("delay", "*.parquet", method="GET", seconds=60, after=after)
    out = tmp_path / "out"
    words = ["-m", "stoker", "pack", "s3://bucket/parquet", "-o", out, "--to", "series",
             "--time", "day", "--memory", "32MiB"]  # fmt: skip
    if how == "package":
        script = f"""
            import signal, stoker
            signal.signal(signal.SIGINT, signal.default_int_handler)
            stoker.pack_series("s3://bucket/parquet", {str(out)!r}, time="day", memory="32MiB")
        """
        words = ["-c", textwrap.dedent(script)]
    running = subprocess.Popen(
        [sys.executable, *map(str, words)], env=server.command.environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    end = time.monotonic() + 30
    while not any("delay" in request.faults for request in list(server.requests)):
        assert running.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    begun = time.monotonic()
    _, told = running.communicate(timeout=60)
    assert time.monotonic() - begun < 20
    assert running.returncode in (130, -signal.SIGINT), told
    assert "KeyboardInterrupt" in told or how == "command"
    assert list(tmp_path.glob("*out*")) == []
