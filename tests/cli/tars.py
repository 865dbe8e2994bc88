"""Makes tar files: whole ones by Python's tarfile, and broken ones block by block."""

import io
import tarfile

import numpy

BLOCK = 512


def npy(array):
    buf = io.BytesIO()
    numpy.save(buf, array, allow_pickle=False)
    return buf.getvalue()


def sample_members(count, fields=("npy", "cls")):
    """(name, bytes) of plain samples."""
    made = []
    for number in range(count):
        values = {
            "npy": npy(numpy.full((2, 3), number, numpy.float32)),
            "cls": str(number % 3).encode(),
            "txt": f"sample {number}".encode(),
        }
        made += [(f"{number:06d}.{field}", values[field]) for field in fields]
    return made


def write(path, members, format=tarfile.USTAR_FORMAT):
    with tarfile.open(path, "w", format=format) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def header(
    name=b"000000.cls", size=b"00000000001\0", type=b"0", checksum=None, magic=b"ustar\x0000"
):
    """One header block, with any field as raw bytes."""
    block = bytearray(BLOCK)
    block[0 : len(name)] = name
    block[100:108] = b"0000644\0"
    block[108:116] = block[116:124] = b"0000000\0"
    block[124:136] = size if isinstance(size, bytes) else b"%011o\0" % size
    block[136:148] = b"00000000000\0"
    block[156:157] = type
    block[257 : 257 + len(magic)] = magic
    block[148:156] = b" " * 8
    block[148:156] = checksum or b"%06o\0 " % sum(block)
    return bytes(block)


def padded(data):
    return data + bytes(-len(data) % BLOCK)


def member(name, data, type=b"0", **fields):
    """A header and its data. A size given apart from the data is a lie."""
    return header(name, **{"size": len(data), "type": type, **fields}) + padded(data)


def record(key, value):
    """One pax record: its length counts itself."""
    rest = b" " + key + b"=" + value + b"\n"
    length = len(rest)
    while length != len(str(length)) + len(rest):
        length = len(str(length)) + len(rest)
    return str(length).encode() + rest


def pax(records, type=b"x", **fields):
    return member(b"././@PaxHeader", records, type=type, **fields)


GOOD = member(b"000000.cls", b"7")
END = bytes(2 * BLOCK)
