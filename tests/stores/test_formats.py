"""Which format works on which store: every one on every one, with the digest of the files."""

import gzip
import json
import pathlib

import pytest
from store_runs import Command

KINDS = ["http", "https", "s3", "az", "abfss", "gs"]
WINDOW = ("--window", 8, "--horizon", 2)

# name: (what is opened below the folder, the same where nothing can be listed, more options)
FORMATS = {
    "tar": ("tar", "tar/shard-{0000..0002}.tar", ()),
    "tar.gz": ("packed", "packed/shard-{0000..0002}.tar.gz", ()),
    "npy": ("values.npy", None, ()),
    "npy of several": ("loose/0*.npy", "loose/{000..009}.npy", ()),
    "npz": ("values.npz", None, ()),
    "npz deflated": ("deflated.npz", None, ()),
    "raw": ("raw.bin", None, ("--format", "raw", "--dtype", "float32", "--shape", 12)),
    "tokens": ("tokens.bin", None, ("--format", "tokens", "--dtype", "uint16", "--window", 33)),
    "images": ("images", "images/class-{00/{000001,000003},01/{000000,000002}}.jpg", ()),
    "series": ("series", "series/metadata.json", WINDOW),
}


def make_arrays(folder):
    numpy = pytest.importorskip("numpy")
    values = numpy.arange(60 * 12, dtype="float32").reshape(60, 12)
    numpy.save(folder / "values.npy", values)
    numpy.savez(folder / "values.npz", x=values, y=values[:, 0])
    numpy.savez_compressed(folder / "deflated.npz", x=values, y=values[:, 0])
    values.tofile(folder / "raw.bin")
    numpy.arange(5000, dtype="uint16").tofile(folder / "tokens.bin")
    (folder / "loose").mkdir()
    for number in range(10):
        numpy.save(folder / "loose" / f"{number:03}.npy", values[number])
    (folder / "series").mkdir()
    values.tofile(folder / "series" / "all_features.mmap")
    entities = [{"name": f"e{i}", "start": 20 * i, "end": 20 * i + 20} for i in range(3)]
    names = [f"c{i}" for i in range(12)]
    told = {"features": names, "labels": names[:1], "entities": entities}
    (folder / "series" / "metadata.json").write_text(json.dumps(told))


@pytest.fixture(scope="module")
def world(lake, tmp_path_factory):
    """A lake whose bucket/train has every format, and the digest of each by its files."""
    root = tmp_path_factory.mktemp("formats")
    folder = root / "bucket" / "train"
    (folder / "packed").mkdir(parents=True)
    (folder / "tar").mkdir()
    for shard in sorted((lake / "bucket" / "train").glob("*.tar")):
        (folder / "tar" / shard.name).write_bytes(shard.read_bytes())
        packed = gzip.compress(shard.read_bytes(), 1)
        (folder / "packed" / f"{shard.name}.gz").write_bytes(packed)
    make_arrays(folder)
    command = Command(tmp_path_factory.mktemp("home"))
    command("gen", "images", "-o", folder / "images", "--folder", "--samples", 4, "--classes", 2,
            "--size", "32x24")  # fmt: skip
    digests = {
        name: command.digest(folder / what, "--shuffle", *options)
        for name, (what, _, options) in FORMATS.items()
    }
    return root, digests


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format", FORMATS)
def test_a_format_is_the_same_on_every_store(request, place, world, kind, format):
    root, digests = world
    what, named, options = FORMATS[format]
    if kind == "https":
        certificates = request.getfixturevalue("certificates")
        server, command, _ = place("http", root=root, tls=certificates.pair("good"))
        options = (*options, "--ca", certificates.ca)
    else:
        server, command, source = place(kind, root=root)
    if kind in ("http", "https"):
        source, what = f"{server.url}/bucket/train", named or what
    assert command.digest(f"{source}/{what}", "--shuffle", *options) == digests[format]
    if named and kind == "s3":  # and named one by one, where names may be read and not listed
        server.fault("status", query="list-type", status=403, code="AccessDenied")
        other = command.with_environment(XDG_CACHE_HOME=str(pathlib.Path(command.home, "other")))
        told = other.stream(f"{source}/{named}", "--shuffle", *options)
        assert told["digest"] == digests[format]
