"""Makes small datasets with Python's own tarfile and numpy: what Stoker reads is compared with
them."""

import io
import json
import tarfile
from pathlib import Path

import numpy


def npy_bytes(array):
    buf = io.BytesIO()
    numpy.save(buf, array, allow_pickle=False)
    return buf.getvalue()


def encode(field, value):
    """A value as the bytes that lie in a shard."""
    if field.endswith("npy"):
        return npy_bytes(value)
    if field == "json":
        return json.dumps(value).encode()
    if isinstance(value, bytes):
        return value
    return str(value).encode()


def sample(number):
    """The fields of one sample, told by its number."""
    array = numpy.random.default_rng(number).standard_normal((4, 4)).astype(numpy.float32)
    return {"npy": array, "cls": number % 10, "txt": f"caption {number} ä", "json": {"n": number}}


def write_tar(path, samples):
    """samples: a list of (key, {field: value})."""
    with tarfile.open(path, "w") as tar:
        for key, fields in samples:
            for field, value in fields.items():
                data = encode(field, value)
                member = tarfile.TarInfo(f"{key}.{field}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def write_shards(folder, samples, shards=2, fields=("npy", "cls"), make=sample):
    """`samples` samples in `shards` tar files of nearly equal length; the folder's path."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    per_shard = -(-samples // shards)
    for shard in range(shards):
        numbers = range(shard * per_shard, min((shard + 1) * per_shard, samples))
        content = [
            (f"{n:06d}", {name: value for name, value in make(n).items() if name in fields})
            for n in numbers
        ]
        write_tar(folder / f"shard-{shard:04d}.tar", content)
    return folder


def damage(path, key, field, cut=b"\x93NUMPY", put=b"\x93NUMBY"):
    """Overwrites the beginning of one member's bytes."""
    with tarfile.open(path) as tar:
        offset = tar.getmember(f"{key}.{field}").offset_data
    with open(path, "r+b") as file:
        file.seek(offset)
        assert file.read(len(cut)) == cut
        file.seek(offset)
        file.write(put)
