"""Reads the rings that the Python hook writes. The numbers are taken from src/watch/record.h, so a
hook that spells one of them out wrongly is found out."""

import json
import re
import struct
from collections import namedtuple
from pathlib import Path

HEADER = Path(__file__).resolve().parents[2] / "src" / "watch" / "record.h"
RING_HEADER = 4096

Record = namedtuple("Record", "pid kind flags fields")
Span = namedtuple("Span", "start end thread what a b")
Mark = namedtuple("Mark", "time thread what a b")
Queue = namedtuple("Queue", "time loader ready early unpinned outstanding rest")
Sample = namedtuple("Sample", "time weight cpu thread kind frame rest")
Frame = namedtuple("Frame", "id parent line function file")
Text = namedtuple("Text", "id text")
Kernel = namedtuple("Kernel", "start end device stream name graph")
Copy = namedtuple("Copy", "start end bytes device stream way source target")
Reached = namedtuple("Reached", "time")
Ring = namedtuple("Ring", "pid parent state lost capacity records")


def numbers():
    """Every constant of the enums in record.h."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    found = {}
    for body in re.findall(r"\benum \w+ \{(.*?)\}", text, flags=re.S):
        for name, value in re.findall(r"(\w+)\s*=\s*(\d+)", body):
            found[name] = int(value)
    for name, value in re.findall(
        r"#define (RING_\w+) (?:UINT64_C\()?(0x[0-9a-f]+|\d+)u?\)?", text
    ):
        found[name] = int(value, 0)
    return found


N = numbers()
FIXED = {
    N["RECORD_SPAN"]: (Span, "<QQIIQQ", 48),
    N["RECORD_MARK"]: (Mark, "<QIIQQ", 40),
    N["RECORD_QUEUE"]: (Queue, "<QIiiiii", 40),
    N["RECORD_SAMPLE"]: (Sample, "<QQQIIII", 48),
    N["RECORD_KERNEL"]: (Kernel, "<QQIIII", 40),
    N["RECORD_COPY"]: (Copy, "<QQQIIBBB5x", 48),
    N["RECORD_REACHED"]: (Reached, "<Q", 16),
}
TEXTS = {
    N[name]
    for name in (
        "RECORD_NAME",
        "RECORD_PROCESS",
        "RECORD_LOADER",
        "RECORD_FILES",
        "RECORD_NOTICE",
    )
}


def parse(pid, data, at):
    """The record at this place, and its size."""
    kind, flags, size = struct.unpack_from("<HHI", data, at)
    assert size >= 8 and size % 8 == 0, f"a record of {size} bytes"
    if kind == N["RECORD_FILLER"]:
        return None, size
    if kind in FIXED:
        form, layout, expected = FIXED[kind]
        assert size == expected
        return Record(pid, kind, flags, form(*struct.unpack_from(layout, data, at + 8))), size
    if kind in TEXTS:
        number, length = struct.unpack_from("<II", data, at + 8)
        assert 16 + length <= size
        return Record(
            pid, kind, flags, Text(number, data[at + 16 : at + 16 + length].decode())
        ), size
    assert kind == N["RECORD_FRAME"], f"a record of kind {kind}"
    number, parent, line, function, file = struct.unpack_from("<IIIHH", data, at + 8)
    text = data[at + 24 : at + 24 + function + file]
    frame = Frame(number, parent, line, text[:function].decode(), text[function:].decode())
    return Record(pid, kind, flags, frame), size


def read_ring(path):
    """A ring whose writer has ended or rests, and that nobody else reads."""
    data = path.read_bytes()
    magic, version, kind, capacity, pid, parent, born = struct.unpack_from("<QIIQIIQ", data, 0)
    assert (magic, version, kind) == (N["RING_MAGIC"], N["RING_VERSION"], N["RING_PYTHON"])
    assert capacity & (capacity - 1) == 0 and len(data) == RING_HEADER + capacity and born
    head, lost, state = struct.unpack_from("<QQQ", data, 64)
    assert head <= capacity, "what was overwritten cannot be read"
    records, at = [], 0
    while at < head:
        record, size = parse(pid, data, RING_HEADER + at)
        at += size
        if record is not None:
            records.append(record)
    return Ring(pid, parent, state, lost, capacity, records)


class Run:
    """All that was told into a run's folder."""

    def __init__(self, folder):
        self.rings = [read_ring(path) for path in sorted(Path(folder).glob("ring.*.py"))]
        self.records = [record for ring in self.rings for record in ring.records]

    def of(self, name):
        return [record for record in self.records if record.kind == N[name]]

    def spans(self, name):
        return [one for one in self.of("RECORD_SPAN") if one.fields.what == N[name]]

    def marks(self, name):
        return [one for one in self.of("RECORD_MARK") if one.fields.what == N[name]]

    def json(self, name):
        return [json.loads(one.fields.text) for one in self.of(name)]

    def processes(self):
        """The last that each process said of itself."""
        return {one.pid: json.loads(one.fields.text) for one in self.of("RECORD_PROCESS")}

    def mains(self):
        return [one for one in self.processes().values() if one["role"] == "main"]

    def workers(self):
        return [one for one in self.processes().values() if one["role"] == "worker"]

    def notices(self):
        return [one.fields.text for one in self.of("RECORD_NOTICE")]

    def stacks(self, pid):
        """(sample, [frames, innermost first]) of one process."""
        frames = {one.fields.id: one.fields for one in self.of("RECORD_FRAME") if one.pid == pid}
        found = []
        for one in self.of("RECORD_SAMPLE"):
            if one.pid == pid:
                stack, at = [], one.fields.frame
                while at:
                    stack.append(frames[at])
                    at = frames[at].parent
                found.append((one.fields, stack))
        return found
