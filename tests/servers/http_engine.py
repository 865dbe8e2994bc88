"""HTTP/1.1 on loopback, in a thread of the test's own process, with control over every byte: an
answer can be late, slow, cut, reset, longer or shorter than it says.

A server is a function from a Request to an Answer. All requests are kept, headers and all.
"""

import asyncio
import socket
import ssl
import struct
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from http import HTTPStatus

HEAD_LIMIT = 64 << 10
BODY_LIMIT = 1 << 30
PIECE = 1 << 18


@dataclass
class Request:
    method: str
    target: str  # as it came: escaped path and query
    headers: list  # pairs, as they came
    body: bytes
    began: float  # time.monotonic()
    connection: int  # which one, counted from 1
    number: int = 0
    status: int = 0  # what was answered
    sent: int = 0  # bytes of the body that were
    finished: float = 0.0
    faults: list = field(default_factory=list)  # names of those that befell it

    @property
    def raw_path(self):
        return self.target.partition("?")[0]

    @property
    def path(self):
        return urllib.parse.unquote(self.raw_path)

    @property
    def query(self):
        """The first value of each name."""
        text = self.target.partition("?")[2]
        pairs = urllib.parse.parse_qsl(text, keep_blank_values=True)
        return dict(reversed(pairs))

    def header(self, name, default=None):
        for key, value in self.headers:
            if key.lower() == name.lower():
                return value
        return default

    def holds(self, text):
        """Whether text is anywhere in what came, escaped or not."""
        lines = [self.target, urllib.parse.unquote(self.target)]
        lines += [f"{name}: {value}" for name, value in self.headers]
        return any(text in line for line in lines) or text.encode() in self.body

    def range(self, size):
        """(first, length) that it asks for, None when it asks for all, False when it cannot be."""
        words = self.header("x-ms-range") or self.header("Range")
        if not words or not words.startswith("bytes=") or "," in words:
            return None
        first, _, last = words.removeprefix("bytes=").partition("-")
        if not first:
            length = min(int(last), size)
            return (size - length, length) if length else False
        first = int(first)
        end = min(int(last) + 1, size) if last else size
        return (first, end - first) if first < end else False


@dataclass
class Answer:
    status: int = 200
    headers: dict = field(default_factory=dict)
    body: object = b""  # bytes or a memoryview
    # how it is sent
    delay: float = 0.0  # seconds before its first byte
    rate: float = 0.0  # bytes a second of the body; 0: as fast as it goes
    length: int | None = None  # what Content-Length says where that is not the truth
    cut: int | None = None  # bytes of the body after which the connection ends; -1: before all
    reset: bool = False  # by a reset, not in order
    close: bool = False  # afterwards


class Engine:
    """Serves handler(request) -> Answer until stop(). The handler runs on the engine's thread."""

    def __init__(self, handler, tls=None, host="127.0.0.1"):
        """tls: (certificate file, key file), or None."""
        self.handler = handler
        self.host = host
        self.requests = []
        self.connections = 0
        self.open_connections = 0
        self.most_connections = 0
        self.active = 0  # requests that are being answered
        self.bytes_sent = 0
        self._tasks = set()
        self._scheme = "https" if tls else "http"
        self._context = None
        if tls:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(*map(str, tls))
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()
        self._ready.wait()

    @property
    def url(self):
        return f"{self._scheme}://{self.host}:{self.port}"

    def stop(self):
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # --- the thread

    def _run(self):
        asyncio.run(self._main())

    async def _main(self):
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(
            self._connected, self.host, 0, limit=HEAD_LIMIT, ssl=self._context, backlog=1024
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        self.connections += 1
        self.open_connections += 1
        self.most_connections = max(self.most_connections, self.open_connections)
        number = self.connections
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while await self._one(reader, writer, number):
                pass
        except (
            ConnectionError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            ssl.SSLError,
        ):
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self.open_connections -= 1
            self._tasks.discard(task)
            writer.close()

    async def _one(self, reader, writer, connection):
        """Serves one request; False when the connection is over."""
        request = await self._read(reader, writer, connection)
        if request is None:
            return False
        request.number = len(self.requests)
        self.requests.append(request)
        answer = self.handler(request)
        request.status = answer.status
        self.active += 1
        try:
            return await self._send(request, answer, writer)
        finally:
            self.active -= 1
            request.finished = time.monotonic()

    async def _read(self, reader, writer, connection):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        began = time.monotonic()
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        method, target, _ = first.split(" ", 2)
        headers = []
        for line in lines:
            name, _, value = line.partition(":")
            headers.append((name, value.strip()))
        request = Request(method, target, headers, b"", began, connection)
        if "100-continue" in request.header("Expect", "").lower():
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in request.header("Transfer-Encoding", ""):
            request.body = await self._read_chunks(reader)
        length = int(request.header("Content-Length") or 0)
        if not 0 <= length <= BODY_LIMIT:
            return None
        if length:
            request.body = await reader.readexactly(length)
        return request

    async def _read_chunks(self, reader):
        body = b""
        while True:
            size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
            body += (await reader.readexactly(size + 2))[:-2]
            if size == 0:
                return body

    async def _send(self, request, answer, writer):
        if answer.delay:
            await asyncio.sleep(answer.delay)
        if answer.cut is not None and answer.cut < 0:
            return self._break(writer, answer)
        writer.write(self._head(request, answer))
        body = memoryview(answer.body)
        if request.method == "HEAD" or answer.status in (204, 304):
            body = body[:0]
        if answer.cut is not None:
            body = body[: answer.cut]
        await self._send_body(request, answer, body, writer)
        if answer.cut is not None:
            return self._break(writer, answer)
        asked = request.header("Connection", "").lower()
        return not answer.close and answer.length is None and asked != "close"

    async def _send_body(self, request, answer, body, writer):
        at = 0
        while at < len(body):
            piece = max(1, int(answer.rate / 10)) if answer.rate else PIECE
            writer.write(body[at : at + piece])
            await writer.drain()
            at += len(body[at : at + piece])
            request.sent = at
            self.bytes_sent += min(piece, len(body))
            if answer.rate:
                await asyncio.sleep(piece / answer.rate)
        await writer.drain()

    @staticmethod
    def _head(request, answer):
        try:
            words = HTTPStatus(answer.status).phrase
        except ValueError:
            words = "Unknown"
        length = len(answer.body) if answer.length is None else answer.length
        headers = {"Content-Length": length, "Date": http_date(time.time()), **answer.headers}
        if answer.status in (204, 304):
            del headers["Content-Length"]
        if answer.close or answer.length is not None:
            headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {answer.status} {words}"]
        lines += [f"{name}: {value}" for name, value in headers.items() if value is not None]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    @staticmethod
    def _break(writer, answer):
        if answer.reset:
            linger = struct.pack("ii", 1, 0)
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        return False


def http_date(seconds):
    """As in the header Date."""
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(seconds))


def depth_of(requests):
    """How many requests had to wait for one another: the longest chain of which each began when
    the one before had been answered. What a client needs in round trips."""
    deepest = {}
    for request in sorted(requests, key=lambda r: r.began):
        before = [d for other, d in deepest.items() if 0 < other.finished <= request.began]
        deepest[request] = 1 + max(before, default=0)
    return max(deepest.values(), default=0)


Request.__hash__ = lambda self: id(self)
