"""What can go wrong with an answer, by name.

A fault is written down with what it befalls (path, method, part of the query), how often (times,
after, chance) and the words of its kind. Those of BEFORE answer in the server's place, so that
nothing is done; those of AFTER spoil the answer that was made.
"""

import fnmatch
import gzip
import random
import time
from dataclasses import dataclass, field, replace

from servers.http_engine import Answer


@dataclass
class Fault:
    kind: str
    path: str = "*"  # fnmatch, of the decoded path
    method: str = "*"
    query: str = ""  # a part of the query
    times: int | None = None  # how many requests it befalls; None: all
    after: int = 0  # how many that it would befall are let pass first
    chance: float = 1.0
    words: dict = field(default_factory=dict)
    passed: int = 0
    count: int = 0  # how many it befell

    def befalls(self, request, dice):
        if not fnmatch.fnmatchcase(request.path, self.path):
            return False
        if self.method not in ("*", request.method) or self.query not in request.target:
            return False
        if self.times is not None and self.count >= self.times:
            return False
        if self.chance < 1.0 and dice.random() >= self.chance:
            return False
        self.passed += 1
        if self.passed <= self.after:
            return False
        self.count += 1
        return True


def status(fault, request, server):
    """Any status, with or without Retry-After and the cloud's own error body."""
    words = fault.words
    answer = server.error(request, words["status"], words.get("code", "InternalError"))
    if "retry_after" in words:
        answer.headers["Retry-After"] = words["retry_after"]
    answer.headers.update(words.get("headers", {}))
    if "body" in words:
        answer.body = words["body"]
    return answer


def redirect(fault, request, server):
    to = fault.words["to"]
    if to.endswith("/*"):
        to = to[:-2] + request.target
    headers = {"Location": to, **fault.words.get("headers", {})}
    return Answer(fault.words.get("status", 307), headers)


def error_in_200(fault, request, server):
    answer = server.error(request, 500, fault.words.get("code", "InternalError"))
    answer.status = 200
    return answer


class Bucket:
    """Lets `rate` requests a second pass."""

    def __init__(self, rate):
        self.rate, self.level, self.last = rate, rate, time.monotonic()

    def take(self):
        now = time.monotonic()
        self.level = min(self.rate, self.level + (now - self.last) * self.rate)
        self.last = now
        if self.level < 1:
            return False
        self.level -= 1
        return True


def throttle(fault, request, server):
    """429 or 503 for what comes over `rate` requests a second."""
    bucket = fault.words.setdefault("bucket", Bucket(fault.words["rate"]))
    if bucket.take():
        fault.count -= 1
        return None
    return status(replace(fault, words={"status": 503, "code": "SlowDown", **fault.words}),
                  request, server)  # fmt: skip


def reset(fault, request, server):
    """The connection is reset before any answer."""
    return Answer(cut=-1, reset=fault.words.get("reset", True))


def change(fault, request, server):
    """From this request on the object is another version."""
    server.objects.change(server.name_of(request))
    return None


def call(fault, request, server):
    """What a test wants to happen at this request."""
    return fault.words["call"](request)


BEFORE = {
    "change": change,
    "call": call,
    "status": status,
    "redirect": redirect,
    "error in 200": error_in_200,
    "throttle": throttle,
    "reset": reset,
}


def delay(fault, request, answer):
    return replace(answer, delay=answer.delay + fault.words["seconds"])


def cut(fault, request, answer):
    """The body ends early: after `at` bytes, or that part of them."""
    at = fault.words.get("at", 0.5)
    at = int(len(answer.body) * at) if isinstance(at, float) else at
    return replace(answer, cut=min(at, len(answer.body)), reset=fault.words.get("reset", False))


def trickle(fault, request, answer):
    return replace(answer, rate=fault.words.get("rate", 1))


def longer(fault, request, answer):
    """Content-Length promises more than comes."""
    return replace(answer, length=len(answer.body) + fault.words.get("by", 7))


def shorter(fault, request, answer):
    """Content-Length promises less than comes."""
    return replace(answer, length=max(0, len(answer.body) - fault.words.get("by", 7)))


def surplus(fault, request, answer):
    """More bytes than the range has, and Content-Length says so."""
    return replace(answer, body=bytes(answer.body) + b"x" * fault.words.get("by", 7))


def lacking(fault, request, answer):
    """Fewer bytes than the range has, and Content-Length says so."""
    return replace(answer, body=bytes(answer.body)[: -fault.words.get("by", 7)])


def wrong_range(fault, request, answer):
    """Content-Range tells of another place than was asked for."""
    told = answer.headers.get("Content-Range")
    if not told:
        return answer
    span, _, size = told.removeprefix("bytes ").partition("/")
    by = fault.words.get("by", 1)
    first, last = (int(number) + by for number in span.split("-"))
    return replace(
        answer, headers={**answer.headers, "Content-Range": f"bytes {first}-{last}/{size}"}
    )


def no_range(fault, request, answer):
    """206 without a Content-Range."""
    headers = {k: v for k, v in answer.headers.items() if k != "Content-Range"}
    return replace(answer, headers=headers)


def other_etag(fault, request, answer):
    """Another ETag each time, or the one that is given."""
    etag = fault.words.get("etag", f'"changed-{fault.count}"')
    return replace(answer, headers={**answer.headers, "ETag": etag})


def encoded(fault, request, answer):
    """Packed by a proxy on the way."""
    body = gzip.compress(bytes(answer.body), 1)
    return replace(answer, body=body, headers={**answer.headers, "Content-Encoding": "gzip"})


def flip(fault, request, answer):
    """One bit of the body is another: at byte `at`, or in the middle."""
    if not len(answer.body):
        return answer
    body = bytearray(answer.body)
    body[fault.words.get("at", len(body) // 2) % len(body)] ^= 1
    return replace(answer, body=bytes(body))


def headers(fault, request, answer):
    return replace(answer, headers={**answer.headers, **fault.words["headers"]})


AFTER = {
    "delay": delay,
    "cut": cut,
    "trickle": trickle,
    "longer": longer,
    "shorter": shorter,
    "surplus": surplus,
    "lacking": lacking,
    "wrong range": wrong_range,
    "no range": no_range,
    "other etag": other_etag,
    "encoded": encoded,
    "flip": flip,
    "headers": headers,
}
# "whole" (200 to a range) and those of lists are the server's own: they change what is made
OWN = ("whole", "no if-match", "list loops", "list repeats", "list is unsorted", "list is endless")


class Script:
    """The faults of a server, in the order in which they were added."""

    def __init__(self, seed=0):
        self.faults, self.dice = [], random.Random(seed)

    def add(self, kind, path="*", method="*", query="", times=None, after=0, chance=1.0, **words):
        if kind not in BEFORE and kind not in AFTER and kind not in OWN:
            raise ValueError(f"no such fault: {kind}")
        fault = Fault(kind, path, method, query, times, after, chance, words)
        self.faults.append(fault)
        return fault

    def draw(self, request):
        """The faults that befall a request."""
        return [fault for fault in self.faults if fault.befalls(request, self.dice)]
