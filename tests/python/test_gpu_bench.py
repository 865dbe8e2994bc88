"""The benchmarks of the GPU path, as far as they go without one: sides that cannot run, tables,
ratios and data. Sides run on the CPU here: what they measure means nothing, that they work does."""

import argparse
import json
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

torch = pytest.importorskip("torch")

from bench import run as bench_run  # noqa: E402
from bench import shards  # noqa: E402
from bench.gpu import data, h2d, jpeg, kernels, loop, tensors, training, windows  # noqa: E402
from bench.gpu import training_sides as sides  # noqa: E402

QUICK = argparse.Namespace(quick=True, runs=1)


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch, tmp_path):
    monkeypatch.setattr(loop, "DEVICE", "cpu")
    monkeypatch.setattr(shards, "DATA", tmp_path)


@pytest.fixture
def few(monkeypatch):
    """Small tensors, so that the 3D-CNN's steps are quick on a CPU."""
    monkeypatch.setattr(sides, "BATCH", 2)
    monkeypatch.setattr(tensors, "BATCH", 2)
    return data.tensors(40)[0]


def row(name, value, **more):
    runs = [] if value is None else [value]
    return {"name": name, "value": value, "unit": "samples/s", "runs": runs, "note": "", **more}


def made_up(names, value=1.0):
    return {name: row(name, value) for name in names}


def test_without_a_gpu_it_says_so_and_ends_well():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    command = [sys.executable, "-m", "bench.gpu", "all", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "no GPU" in done.stdout


def test_a_side_that_fails_is_a_row_that_says_why():
    def work(seconds):
        raise ValueError("no such\n thing")

    rows = loop.measured([loop.Side("broken", work, 1.0)], 1)
    assert rows["broken"]["value"] is None
    assert "ValueError: no such thing" in rows["broken"]["note"]


def test_the_clock_counts_what_was_drawn_in_its_time():
    drawn = []

    def batches():
        while True:
            yield torch.zeros(4, 8)

    def work(batch):
        drawn.append(len(batch))
        return len(batch), batch.nbytes

    answer = loop.timed(batches(), work, 0.05, warm=7)
    assert answer["samples"] == 4 * answer["steps"]
    assert len(drawn) >= 7 + answer["steps"]
    assert answer["bytes_out"] == 128 * answer["steps"]
    assert answer["samples_per_s"] == pytest.approx(answer["samples"] / answer["seconds"])
    assert answer["peak_rss"] > 0


class MadeUpActivity:
    """stoker.gpu.Activity of half a second in which kernels ran every other bin."""

    busy, kernels, kernel_seconds, copy_seconds, copied_bytes, lost = 0.5, 7, 0.25, 0.1, 4096, 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def timeline(self):
        numpy = pytest.importorskip("numpy")
        count = 1000
        return numpy.arange(count) * 0.01, numpy.arange(count) % 2.0, numpy.zeros(count)


def test_busy_time_is_told_with_its_course(monkeypatch):
    stoker = pytest.importorskip("stoker")
    made_up_gpu = types.ModuleType("stoker.gpu")
    made_up_gpu.Activity = MadeUpActivity
    made_up_gpu.nvml_utilization = lambda: 0.75
    monkeypatch.setitem(sys.modules, "stoker.gpu", made_up_gpu)
    monkeypatch.setattr(stoker, "gpu", made_up_gpu, raising=False)
    with loop.Busy() as busy:
        time.sleep(0.25)
    facts = busy.facts()
    assert facts["busy"] == 0.5
    assert facts["nvml_busy"] == 0.75
    assert len(facts["timeline"]["seconds"]) == 200
    assert set(facts["timeline"]["kernels"][:-1]) <= {0.4, 0.6}
    json.dumps(facts)


def test_training_has_the_ratios_that_are_promised():
    names = ("bound", "stoker", "resident", "thwc", "loaded_bound", *training.PEERS, "lstm")
    rows = made_up([*names, "lstm_bound"])
    rows["bound"].update(value=20000.0, busy=0.98)
    rows["stoker"].update(value=19600.0, busy=0.97)
    rows["npy_4"].update(value=1900.0)
    rows["lstm"].update(busy=0.90)
    rows["lstm_bound"].update(busy=0.91)
    found = training.ratios(rows)
    assert found["stoker/bound"] == pytest.approx(0.98)
    assert found["stoker/best_dataloader"] == pytest.approx(19600 / 1900)
    assert found["stoker_busy"] == 0.97
    promised = {"resident/bound", "bound_busy", "thwc/cthw", "lstm/bound", "loaded_bound/bound"}
    assert promised | {"lstm_busy", "lstm_bound_busy"} <= found.keys()


def test_training_without_some_rows_has_the_ratios_that_are_left():
    rows = made_up(("bound", "stoker", "npy_0"))
    rows["bound"].update(value=None)
    assert training.ratios(rows) == {"stoker/best_dataloader": 1.0}


def test_the_lower_limit_is_named():
    rows = [row("stoker", 40e9), row("pinned_copy", 55e9), row("page_cache", 65e9)]
    limit = h2d.lower_limit(rows)
    assert limit["value"] == 55e9
    assert limit["name"].startswith("pinned_copy")
    assert h2d.lower_limit(rows[:1])["value"] is None


def test_a_gathered_window_is_read_and_written():
    rows = made_up(("stoker", "resident", "resident_1024", "memmap_0", "memmap_4"))
    rows["resident"].update(value=4e8)
    rows["stoker"].update(value=4e6)
    rows["memmap_4"].update(value=1e5)
    found = windows.ratios(rows, row("hbm", 4e12))
    assert found["resident/hbm"] == pytest.approx(2 * 3844 * 4e8 / 4e12)
    assert found["stoker/memmap_dataloader"] == pytest.approx(40)


def test_jpeg_is_held_against_nvjpeg():
    rows = made_up(("gpu", "auto", "cpu", "nvjpeg", "cpu_decode"))
    rows["nvjpeg"].update(value=25000.0)
    rows["auto"].update(value=32000.0)
    rows["cpu_decode"].update(value=15000.0)
    assert jpeg.ratios(rows)["auto/nvjpeg"] == pytest.approx(1.28)
    assert "gpu/nvjpeg" in jpeg.ratios(rows)
    assert jpeg.limit(rows)["value"] == 40000.0


def test_kernels_are_held_against_a_copy():
    def lines(copy, fused):
        text = [{"name": "hbm", "value": copy}, {"name": "fused", "value": fused, "bytes": 9}]
        return "starting\n" + "\n".join(map(json.dumps, text)) + "\n"

    runs = [kernels.parse(lines(4e12, fused)) for fused in (3.0e12, 3.6e12, 3.4e12)]
    found = kernels.result(runs)
    assert found["ratios"] == {"fused/hbm": pytest.approx(0.85)}
    assert [entry["runs"] for entry in found["rows"]][1] == [3.0e12, 3.6e12, 3.4e12]


def test_a_result_is_a_table_that_prints(capsys):
    rows = [row("stoker", 40e9, unit="bytes/s", samples_per_s=3e4, cpu_s=1.0, peak_rss=1 << 30)]
    rows.append(row("dali_gpu", None, note="not measured: nvidia-dali is not installed"))
    result = {"bench": "gpu/h2d", "machine": {"cpu": "a", "cores": 16}, "rows": rows}
    result["limit"] = h2d.lower_limit([rows[0], row("pinned_copy", 55e9, unit="bytes/s")])
    bench_run.print_table({**result, "ratios": {"stoker/limit": 0.727}})
    printed = capsys.readouterr().out
    assert "0.73" in printed and "not installed" in printed


def test_samples_are_where_the_extents_say():
    path, facts = data.tensors(20)
    numpy = pytest.importorskip("numpy")
    line = (path / "extents.txt").read_text().splitlines()[7]
    offset, length, name = line.split(" ")
    wanted = numpy.load(path / "loose" / "000007.npy")
    got = numpy.fromfile(path / name, numpy.float16, int(length) // 2, offset=int(offset))
    assert (got == wanted.reshape(-1)).all()
    assert facts["bytes"] == 20 * wanted.nbytes


def test_the_streams_of_tar_give_every_sample_once():
    path, _ = data.tensors(20)
    got = [x.tobytes() for x, _ in sides.TarStream(path)]
    assert len(got) == len(set(got)) == 20


def test_sides_of_training_run(few):
    for side in sides.bound, sides.stoker:
        answer = side(few, 0.01)
        assert answer["samples"] == 2 * answer["steps"] > 0
    for answer in sides.npy_files(few, 0, 0.01), sides.tar_stream(few, 2, 0.01):
        assert answer["samples_per_s"] > 0


def test_the_bound_runs_beside_a_busy_loader(few, capfd):
    answer = sides.loaded_bound(few, 0.01)
    assert answer["samples"] > 0
    print("still here")
    assert "still here" in capfd.readouterr().out


def test_the_lstm_learns_from_windows(monkeypatch):
    monkeypatch.setattr(sides, "LSTM_BATCH", 16)
    path, _ = data.series(4, 100)
    for side in sides.lstm_bound, sides.lstm_stoker:
        assert side(path / "series", 0.01)["samples"] % 16 == 0


def test_a_batch_of_the_device_is_that_of_the_cpu(few):
    tensors.check(few)
    assert tensors._first_batch(few)["value"] > 0
