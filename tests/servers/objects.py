"""What a server serves: the files of a folder, what was uploaded, and names that are made up."""

import bisect
import hashlib
import mmap
import os
import pathlib
import time


class Object:
    """Bytes with an ETag."""

    def __init__(self, body, etag, modified):
        self.body, self.etag, self.modified = body, etag, modified

    @property
    def size(self):
        return len(self.body)


class Sequence:
    """`count` names that exist nowhere: prefix, number, suffix. Sorted, never all in memory."""

    def __init__(self, prefix, count, suffix="", body=b"x"):
        self.prefix, self.count, self.suffix, self.body = prefix, count, suffix, body

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        if number >= self.count:
            raise IndexError(number)
        return f"{self.prefix}{number:08d}{self.suffix}"

    def __contains__(self, name):
        number = name.removeprefix(self.prefix).removesuffix(self.suffix)
        return name.startswith(self.prefix) and number.isdigit() and int(number) < self.count


class Objects:
    """All objects of one server, by name ("bucket/key", or a path)."""

    def __init__(self, root=None):
        self.root = pathlib.Path(root).resolve() if root else None
        self.made = {}  # uploaded, or put here by a test
        self.sequences = []
        self.changes = {}  # name -> how often a test changed it
        self.listed = None
        self._maps = {}

    def put(self, name, body):
        body = bytes(body)
        self.made[name] = Object(body, f'"{hashlib.md5(body).hexdigest()}"', time.time())
        self.listed = None
        return self.made[name]

    def delete(self, name):
        self.listed = None
        return self.made.pop(name, None)

    def change(self, name):
        """Another version of the same bytes from now on: its ETag is another."""
        self.changes[name] = self.changes.get(name, 0) + 1

    def get(self, name):
        found = self.made.get(name) or self._file(name)
        for sequence in self.sequences:
            if found is None and name in sequence:
                found = Object(sequence.body, f'"{hashlib.md5(name.encode()).hexdigest()}"', 0)
        if found and name in self.changes:
            etag = hashlib.md5(f"{found.etag}{self.changes[name]}".encode()).hexdigest()
            found = Object(found.body, f'"{etag}"', found.modified + self.changes[name])
        return found

    def _file(self, name):
        if self.root is None:
            return None
        path = (self.root / name.lstrip("/")).resolve()
        if not path.is_relative_to(self.root) or not path.is_file():
            return None
        stat = path.stat()
        key = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        kept = self._maps.get(path)
        if kept is None or kept[0] != key:
            body = b""
            if stat.st_size:
                with open(path, "rb") as file:
                    body = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            etag = hashlib.md5(repr((name.lstrip("/"), *key)).encode()).hexdigest()
            kept = self._maps[path] = (key, Object(memoryview(body), f'"{etag}"', stat.st_mtime))
        return kept[1]

    def names(self):
        """All names, sorted bytewise; a list, or a sequence that looks like one."""
        if self.sequences:
            return self.sequences[0]
        if self.listed is None:
            names = set(self.made)
            if self.root:
                for folder, _, files in os.walk(self.root):
                    inside = pathlib.Path(folder).relative_to(self.root)
                    names.update((inside / file).as_posix() for file in files)
            self.listed = sorted(names, key=lambda name: name.encode())
        return self.listed


class Page:
    """One page of a list: keys in order, folders where there is a delimiter."""

    def __init__(self, names, prefix="", delimiter="", after="", most=1000):
        """names: sorted; prefix and keys are whole names; after: the last name of the page
        before. A folder counts as one name."""
        self.keys, self.folders, self.next = [], [], None
        at = (
            bisect.bisect_right(names, after)
            if after > prefix
            else bisect.bisect_left(names, prefix)
        )
        last = None
        while at < len(names):
            name = names[at]
            if not name.startswith(prefix):
                break
            if len(self.keys) + len(self.folders) == most:
                self.next = last
                break
            cut = name.find(delimiter, len(prefix)) if delimiter else -1
            if cut < 0:
                self.keys.append(name)
                last = name
                at += 1
                continue
            folder = name[: cut + 1]
            self.folders.append(folder)
            last = folder + "\U0010ffff"
            at = bisect.bisect_right(names, last)
