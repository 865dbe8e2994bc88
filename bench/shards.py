"""The data sets of the benchmarks, written without Stoker. Each is made once and kept."""

import io
import json
import os
import pathlib
import shutil
import tarfile

import numpy

from bench.measure import ROOT

DATA = pathlib.Path(os.environ.get("STOKER_BENCH_DATA", ROOT / "data" / "bench"))


def folder(name, make, **what):
    """The folder of a data set; make(folder) fills it and returns facts that are kept beside it."""
    path = DATA / name
    facts_path = path / "facts.json"
    if facts_path.exists():
        facts = json.loads(facts_path.read_text())
        if all(facts.get(key) == json.loads(json.dumps(value)) for key, value in what.items()):
            return path, facts
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    print(f"  making {path}", flush=True)
    facts = {**what, **make(path)}
    facts_path.write_text(json.dumps(facts))
    return path, facts


def npy_bytes(array):
    out = io.BytesIO()
    numpy.lib.format.write_array(out, array, version=(1, 0))
    return out.getvalue()


def tensors(samples, shards, shape=(3, 16, 112, 112), classes=10):
    """Tar shards of KEY.npy (f16) and KEY.cls, and the same samples as loose files."""

    def make(path):
        return _write_tensors(path, samples, shards, shape, classes)

    return folder(f"tensors-{samples}", make, samples=samples, shards=shards, shape=list(shape))


def _write_tensors(path, samples, shards, shape, classes):
    loose = path / "loose"
    loose.mkdir()
    random = numpy.random.default_rng(0)
    labels, words, extents = [], [], []
    for shard in range(shards):
        name = path / f"shard-{shard:04d}.tar"
        with tarfile.open(name, "w", format=tarfile.USTAR_FORMAT) as tar:
            for number in range(shard * samples // shards, (shard + 1) * samples // shards):
                noise = random.integers(0, 1024, size=shape, dtype=numpy.uint16)
                array = (noise | 0x3C00).view(numpy.float16)  # 1.0 <= x < 2.0
                label = int(random.integers(classes))
                labels.append(label)
                words.append(first_word(array))
                for field, data in ("npy", npy_bytes(array)), ("cls", str(label).encode()):
                    if field == "npy":
                        skip = len(data) - array.nbytes
                        extents.append((tar.offset + 512 + skip, array.nbytes, name.name))
                    _add(tar, f"{number:06d}.{field}", data)
                    (loose / f"{number:06d}.{field}").write_bytes(data)
    with open(path / "extents.txt", "w") as out:
        out.writelines(f"{offset} {length} {name}\n" for offset, length, name in extents)
    size = samples * int(numpy.prod(shape)) * 2
    return {"bytes": size, "labels": labels, "words": words}


def first_word(array):
    """The first 8 bytes of a sample, by which it is known again."""
    return int(array.reshape(-1)[:4].view(numpy.uint64)[0])


def _add(tar, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def records(count):
    """A flat file of 32-byte records: 8 f32 each, the first of them the record's number."""

    def make(path):
        array = numpy.random.default_rng(0).random((count, 8), dtype=numpy.float32)
        array[:, 0] = numpy.arange(count) % (1 << 20)
        array.tofile(path / "records.raw")
        return {"bytes": array.nbytes}

    return folder(f"records-{count}", make, samples=count)


def tiny_tar(name, shards, per_shard, with_label):
    """Shards of 32-byte npy members (160 with their header), with or without a cls member."""

    def make(path):
        for shard in range(shards):
            _tiny_shard(path / f"shard-{shard:04d}.tar", shard * per_shard, per_shard, with_label)
        return {"bytes": shards * per_shard * 32, "members": shards * per_shard * (1 + with_label)}

    return folder(
        f"{name}-{shards}x{per_shard}",
        make,
        shards=shards,
        per_shard=per_shard,
        with_label=with_label,
    )


def _tiny_shard(path, first, count, with_label):
    """All members of a shard at once: one row of bytes a sample, then names and checksums."""
    member = npy_bytes(numpy.zeros(8, numpy.float32))
    parts = [_member("00000000.npy", member)]
    if with_label:
        parts.append(_member("00000000.cls", b"0"))
    template = numpy.frombuffer(b"".join(parts), numpy.uint8)
    rows = numpy.tile(template, (count, 1))
    numbers = numpy.arange(first, first + count)
    digits = (numbers[:, None] // 10 ** numpy.arange(7, -1, -1) % 10 + ord("0")).astype("u1")
    values = numpy.repeat(numbers.astype(numpy.float32)[:, None], 8, axis=1)
    data_at = 512 + len(member) - 32
    rows[:, data_at : data_at + 32] = values.view(numpy.uint8).reshape(count, 32)
    if with_label:
        rows[:, 1024 + 512] = ord("0") + numbers % 10
    for header in range(0, rows.shape[1], 1024):
        rows[:, header : header + 8] = digits
        _checksum(rows[:, header : header + 512])
    with open(path, "wb") as out:
        out.write(rows.tobytes())
        out.write(bytes(1024))


def _member(name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    return info.tobuf(tarfile.USTAR_FORMAT) + data + bytes(-len(data) % 512)


def sparse_tar(shards, per_shard, size):
    """Shards of large members whose bytes are holes: headers to index, and no disk used."""

    def make(path):
        for shard in range(shards):
            with open(path / f"shard-{shard:04d}.tar", "wb") as out:
                for number in range(per_shard):
                    out.seek(number * (512 + size))
                    info = tarfile.TarInfo(f"{shard * per_shard + number:08d}.bin")
                    info.size = size
                    out.write(info.tobuf(tarfile.USTAR_FORMAT))
                out.truncate(per_shard * (512 + size) + 1024)
        return {"members": shards * per_shard}

    return folder(f"sparse-{shards}x{per_shard}", make, size=size)


def _checksum(headers):
    """Six octal digits, NUL, space, over the header with its checksum field blank."""
    headers[:, 148:156] = ord(" ")
    sums = headers.sum(axis=1, dtype=numpy.int64)
    headers[:, 148:154] = sums[:, None] // 8 ** numpy.arange(5, -1, -1) % 8 + ord("0")
    headers[:, 154] = 0
