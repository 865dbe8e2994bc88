"""Memory: packing and streaming more than the budget stay within it."""

import json

import pytest

pytest.importorskip("pyarrow")

MIB = 1 << 20

SCRIPT = """
import json, sys, threading, time
import numpy, pyarrow, pyarrow.csv, pyarrow.ipc, pyarrow.parquet
import stoker

what, folder, budget = sys.argv[1], sys.argv[2], int(sys.argv[3])


def resident():
    # anonymous and shared: the page cache is not the process's
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return sum(int(lines[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem"))


def rows(seed, count):
    random = numpy.random.default_rng(seed)
    return {f"f{i}": random.standard_normal(count, numpy.float32) for i in range(16)}


if what == "make":
    for number in range(4 * budget // (64 * 16384) + 1):
        table = pyarrow.table(rows(number, 16384))
        pyarrow.parquet.write_table(table, f"{folder}/e{number:04d}.parquet")
    sys.exit()

# One of each kind first: what the imports and the threads take is no part of the budget.
small = pyarrow.table(rows(0, 64))
stoker.pack_series(small, folder + "/../first", force=True)
with stoker.Loader(stoker.open(folder + "/../first", as_="numpy", window=8), 8) as loader:
    for batch in loader:
        pass
base, peak, over = resident(), 0, threading.Event()


def watch():
    global peak
    while not over.wait(0.005):
        peak = max(peak, resident())


watcher = threading.Thread(target=watch)
watcher.start()
if what == "stream":
    ds = stoker.open(folder, as_="numpy", window=60)
    with stoker.Loader(ds, 256, shuffle=True, memory=budget, threads=2) as loader:
        for number, batch in enumerate(loader):
            if number == 300:
                break
        del batch
else:
    options = {"standard": {}, "late": {"scale": "late"}, "robust": {"scaler": "robust"}}
    options["mixed"] = {"entity": "f0_code"}
    options["wide"] = {"scaler": "robust"}
    options["wide split"] = {"scaler": "robust", "split": (0.8, 0.2)}
    source = folder
    if what.startswith("wide"):
        def source():
            random = numpy.random.default_rng(0)
            for seed in range(4 * budget // (16000 * 256) + 1):
                values = random.standard_normal((4000, 256), numpy.float32)
                yield pyarrow.RecordBatch.from_arrays(
                    [pyarrow.array(column) for column in values],
                    [f"f{i}" for i in range(4000)],
                )
        source = source()
    if what == "mixed":
        def source():
            random = numpy.random.default_rng(0)
            for seed in range(4 * budget // (68 * 16384) + 1):
                codes = pyarrow.array(random.integers(0, 500, 16384))
                times = pyarrow.array(random.integers(0, 1 << 60, 16384))
                names = {"f0_code": codes, "at": times}
                yield pyarrow.RecordBatch.from_pydict(rows(seed, 16384) | names)
        source, options["mixed"]["time"] = source(), "at"
    packed = stoker.pack_series(
        source, folder + "/../" + what, memory=budget, threads=2, **options[what]
    )
    assert packed.bytes >= 3.5 * budget, packed
over.set()
watcher.join()
print(json.dumps(peak - base))
"""


@pytest.fixture(scope="module")
def budget():
    return 16 * MIB


def test_packing_and_streaming_four_times_the_budget_stay_within_it(run_python, tmp_path, budget):
    folder = tmp_path / "in"
    folder.mkdir()
    made = run_python(SCRIPT, "make", folder, budget)
    assert made.returncode == 0, made.stderr
    over = {}
    for what in ("standard", "late", "robust", "mixed", "wide", "wide split"):
        done = run_python(SCRIPT, what, folder, budget)
        assert done.returncode == 0, done.stderr
        over[what] = json.loads(done.stdout)
    done = run_python(SCRIPT, "stream", tmp_path / "standard", budget)
    assert done.returncode == 0, done.stderr
    over["stream"] = json.loads(done.stdout)
    limit = budget + 64 * MIB
    assert all(peak <= limit for peak in over.values()), over
