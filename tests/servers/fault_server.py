"""The fault server: serves a folder over HTTP/1.1 as a plain web server, as S3, as Azure Blob
Storage or as Google Cloud Storage, and does wrong by script.

In a test:            server = FaultServer(folder, kind="s3"); server.fault("cut", path="*.tar")
As a program (for benchmarks): python -m servers.fault_server FOLDER --latency 0.02
"""

import argparse
import base64
import sys
import threading
import time

from servers import faults
from servers.azure_imitation import AzureImitation
from servers.http_engine import Answer, Engine, http_date
from servers.objects import Objects, Sequence
from servers.s3_imitation import S3Imitation

# eight zero bytes, as numpy writes them
TINY_NPY = (
    b"\x93NUMPY\x01\x00v\x00"
    + b"{'descr': '|u1', 'fortran_order': False, 'shape': (8,), }".ljust(117)
    + b"\n"
    + bytes(8)
)


class PlainImitation:
    """A plain web server. Its objects' names are their paths."""

    missing = "NotFound"

    def __init__(self, server):
        self.server = server

    def refuse(self, request):
        """An answer for those without the password, where one is wanted; None: let in."""
        password = self.server.options.get("password")  # "user:word"
        if password is None:
            return None
        right = base64.b64encode(password.encode()).decode()
        if request.header("Authorization") == f"Basic {right}":
            return None
        answer = self.error(request, 401, "Unauthorized")
        answer.headers["WWW-Authenticate"] = 'Basic realm="test"'
        return answer

    def name_of(self, request):
        return request.path.lstrip("/")

    def handle(self, request):
        name = self.name_of(request)
        if request.method in ("GET", "HEAD"):
            return self.server.read(request, name)
        if request.method == "PUT":
            made = self.server.objects.put(name, request.body)
            return Answer(201, {"ETag": made.etag})
        return self.error(request, 405, "MethodNotAllowed")

    def error(self, request, status, code):
        return Answer(status, {"Content-Type": "text/plain"}, f"{status} {code}\n".encode())


KINDS = {
    "http": PlainImitation,
    "s3": S3Imitation,
    "gs": S3Imitation,
    "azure": AzureImitation,
}


class FaultServer:
    """One server. All of it may be changed while it runs."""

    def __init__(self, root=None, kind="http", seed=0, tls=None, **options):
        self.objects = Objects(root)
        self.kind = kind
        self.options = options
        self.script = faults.Script(seed)
        self.tokens = None  # the only bearer tokens that are let in; None: everybody
        self.keys = {}  # S3: access key id -> secret; Azure: account -> key. Empty: not checked
        self.sessions = None  # S3: the only session tokens that are let in; None: any
        self.imitation = KINDS[kind](self)
        self.lock = threading.Lock()
        self.engine = Engine(self._handle, tls)

    @property
    def url(self):
        return self.engine.url

    @property
    def port(self):
        return self.engine.port

    @property
    def requests(self):
        return self.engine.requests

    def reads(self, path=""):
        """The GETs of objects whose path ends so."""
        return [r for r in self.requests if r.method == "GET" and r.path.endswith(path)]

    def fault(self, kind, *arguments, **words):
        return self.script.add(kind, *arguments, **words)

    def forget(self):
        """No faults and no requests any more. What a process that has ended had asked for ahead is
        on its way for a moment yet: that is waited for."""
        deadline, quiet, seen = time.monotonic() + 5, 0, -1
        while self.engine.open_connections and quiet < 10 and time.monotonic() < deadline:
            quiet = quiet + 1 if len(self.requests) == seen and not self.engine.active else 0
            seen = len(self.requests)
            time.sleep(0.02)
        self.script.faults.clear()
        self.engine.requests.clear()

    def stop(self):
        self.engine.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # --- on the engine's thread

    def _handle(self, request):
        drawn = self.script.draw(request)
        request.faults = [fault.kind for fault in drawn]
        for fault in drawn:
            if fault.kind in faults.BEFORE:
                answer = faults.BEFORE[fault.kind](fault, request, self)
                if answer is not None:
                    return self._late(drawn, request, answer)
        answer = self.imitation.refuse(request) or self.imitation.handle(request)
        for fault in drawn:
            if fault.kind in faults.AFTER:
                answer = faults.AFTER[fault.kind](fault, request, answer)
        return answer

    @staticmethod
    def _late(drawn, request, answer):
        for fault in drawn:
            if fault.kind == "delay":
                answer = faults.delay(fault, request, answer)
        return answer

    def error(self, request, status, code):
        return self.imitation.error(request, status, code)

    def name_of(self, request):
        return self.imitation.name_of(request)

    def read(self, request, name, more=None):
        """GET or HEAD of an object."""
        found = self.objects.get(name)
        if found is None:
            return self.error(request, 404, self.imitation.missing)
        wanted = request.header("If-Match")
        if wanted and "no if-match" not in request.faults:
            if found.etag not in [word.strip() for word in wanted.split(",")]:
                return self.error(request, 412, "PreconditionFailed")
        headers = {
            "ETag": found.etag,
            "Last-Modified": http_date(found.modified),
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
            **(more or {}),
        }
        span = request.range(found.size)
        if span is None or "whole" in request.faults:
            return Answer(200, headers, found.body)
        if span is False:
            answer = self.error(request, 416, "InvalidRange")
            answer.headers["Content-Range"] = f"bytes */{found.size}"
            return answer
        first, length = span
        headers["Content-Range"] = f"bytes {first}-{first + length - 1}/{found.size}"
        return Answer(206, headers, memoryview(found.body)[first : first + length])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--kind", choices=KINDS, default="http")
    parser.add_argument("--latency", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument(
        "--rate", type=float, default=0.0, metavar="BYTES", help="a second, an answer"
    )
    parser.add_argument("--sequence", type=int, default=0, metavar="N", help="many/N made-up .npy")
    arguments = parser.parse_args()
    server = FaultServer(arguments.folder, kind=arguments.kind)
    if arguments.sequence:
        server.objects.sequences.append(Sequence("many/", arguments.sequence, ".npy", TINY_NPY))
    if arguments.latency:
        server.fault("delay", seconds=arguments.latency)
    if arguments.rate:
        server.fault("trickle", rate=arguments.rate)
    print(server.url, flush=True)
    try:
        sys.stdin.read()  # until whoever started it goes
    except KeyboardInterrupt:
        pass
    server.stop()


if __name__ == "__main__":
    main()
