"""A browser for tests: Debian's Chromium without a window, told what to do through two pipes."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = [
    "--headless=new",
    "--no-sandbox",  # the pages are our own, and containers have none
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # there is no network
    "--remote-debugging-pipe",
]

# Chromium reads commands from descriptor 3 and answers on 4.
TRAMPOLINE = """
import os, sys
read, write = int(sys.argv[1]), int(sys.argv[2])
os.dup2(read, 3)
os.dup2(write, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def find():
    return next(filter(None, map(shutil.which, NAMES)), None)


def _pipe():
    """Both ends out of the way of 3 and 4."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 64) for end in ends]
    for end in ends:
        os.close(end)
    return moved


class Browser:
    """One browser with one tab."""

    def __init__(self, folder):
        (child_reads, commands), (answers, child_writes) = _pipe(), _pipe()
        words = [sys.executable, "-c", TRAMPOLINE, str(child_reads), str(child_writes), find()]
        self.process = subprocess.Popen(
            [*words, *OPTIONS, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(child_reads, child_writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(child_reads)
        os.close(child_writes)
        self.commands = os.fdopen(commands, "wb")
        self.answers = os.fdopen(answers, "rb")
        self.number, self.session, self.events = 0, None, []
        self.guard = threading.Timer(0, lambda: None)
        self.watch(60)
        tabs = self.tell("Target.getTargets")["targetInfos"]
        tab = next(one["targetId"] for one in tabs if one["type"] == "page")
        self.session = self.tell("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.tell(f"{domain}.enable")

    def watch(self, seconds):
        """Ends a browser that takes longer than that: whoever waits for it then fails."""
        self.guard.cancel()
        self.guard = threading.Timer(seconds, self.process.kill)
        self.guard.start()

    def tell(self, method, **parameters):
        """Sends one command and waits for its answer; events that come meanwhile are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.commands.write(json.dumps(message).encode() + b"\0")
        self.commands.flush()
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        data = bytearray()
        while (byte := self.answers.read(1)) != b"\0":
            assert byte, "the browser ended"
            data += byte
            if more := self.answers.peek():
                end = more.find(b"\0")
                data += self.answers.read(end if end >= 0 else len(more))
        return json.loads(data)

    def run(self, script):
        """The value of a script of JavaScript, awaited."""
        done = self.tell(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def look_at(self, width=1000, height=1400, dark=False, phone=False):
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path):
        """Opens a report and waits until all of its charts are drawn."""
        self.watch(120)
        self.events.clear()
        self.tell("Page.navigate", url=path.as_uri())
        while not any(one.get("method") == "Page.loadEventFired" for one in self.events):
            self.events.append(self._read())
        return self.run(
            "new Promise((found) => { const until = Date.now() + 30000; (function look() {"
            " const data = document.documentElement.dataset;"
            " if (data.done || Date.now() > until) found({...data}); else setTimeout(look, 20);"
            "})(); })"
        )

    def requests(self):
        """What the page asked the world for, besides itself."""
        sent = [one for one in self.events if one.get("method") == "Network.requestWillBeSent"]
        urls = [one["params"]["request"]["url"] for one in sent]
        return [url for url in urls if not url.startswith(("data:", "blob:", "file:"))]

    def complaints(self):
        """Exceptions of scripts, and errors that the browser wrote to its console."""
        found = []
        for event in self.events:
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(event["params"]["exceptionDetails"]["text"])
            if event.get("method") == "Log.entryAdded":
                entry = event["params"]["entry"]
                if entry["level"] == "error":
                    found.append(entry["text"])
        return found

    def print(self):
        """The page as a PDF."""
        done = self.tell("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        return base64.b64decode(done["data"])

    def picture(self, path, whole=True):
        done = self.tell("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(done["data"]))

    def close(self):
        self.guard.cancel()
        self.process.terminate()
        self.process.wait(timeout=20)
        self.commands.close()
        self.answers.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser that the tests of a file share."""
    if find() is None:
        pytest.skip("there is no Chromium here: make setup installs it")
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()
