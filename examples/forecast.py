"""Forecasts the next value of many series with a small LSTM, and shows that it has learned.

    python examples/forecast.py
    python examples/forecast.py --entities 1000 --rows 5000 --device cuda

1. `stoker gen series` writes a Parquet file an entity.
2. `stoker.pack_series` makes one scaled array of them, split by time: train, val, test. The scaler
   is fitted on train alone.
3. The LSTM learns from shuffled windows of train. After each epoch it is measured on val.
4. On test, which it has never seen, it is compared with the naive forecast "as the last value", in
   the units of the data.
5. Walk forward: test again, in the order of time, a batch a moment. All entities are forecast
   first and learned from afterwards, as it would be in use. The errors are shown by day.
"""

import argparse
import itertools
import pathlib
import subprocess
import sys
import time

import numpy
import stoker
import torch
from torch import nn


class Forecaster(nn.Module):
    """Reads a window and says how the label changes from its last row."""

    def __init__(self, features, hidden, label):
        super().__init__()
        self.label = label  # column of x that holds the label
        self.lstm = nn.LSTM(features, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        _, (last, _) = self.lstm(x)
        return x[:, -1, self.label, None] + self.head(last[0])


def main():
    options = arguments()
    torch.manual_seed(options.seed)
    torch.set_num_threads(max(1, torch.get_num_threads() - 1))  # one core is the loader's
    tables, series = options.data / "tables", options.data / "series"
    generate(tables, options)
    pack(tables, series, options)

    train, val, test = (open_split(series, name, options) for name in ("train", "val", "test"))
    print(f"windows: {len(train):,} train, {len(val):,} val, {len(test):,} test")
    label = train.features.index(train.labels[0])
    model = Forecaster(len(train.features), options.hidden, label).to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.rate)
    learn(model, optimizer, train, val, options)

    model_error, naive_error = errors(model, test, options)
    better = 1 - model_error / naive_error
    print(f"test: MAE {model_error:.4f}, naive {naive_error:.4f}: {better:.0%} better")
    walk_forward(model, optimizer, test, options)
    return 0 if model_error < naive_error else 1


def generate(tables, options):
    """What a user has already: a table an entity."""
    shape = ["--entities", options.entities, "--rows", options.rows, "--features", options.features]
    command = ["gen", "series", "-o", tables, *shape, "--seed", options.seed, "--force"]
    subprocess.run([sys.executable, "-m", "stoker", *map(str, command)], check=True)


def pack(tables, series, options):
    begun = time.perf_counter()
    done = stoker.pack_series(
        tables,
        series,
        time="time",
        split="0.8,0.1,0.1",
        window=options.window,
        horizon=1,
        force=True,
    )
    took = time.perf_counter() - begun
    print(f"packed {done.rows:,} rows of {done.entities:,} entities in {took:.2f} s")


def open_split(series, split, options):
    fields = ("x", "y", "time")
    return stoker.open(series, window=options.window, horizon=1, split=split, fields=fields)


def learn(model, optimizer, train, val, options):
    kind = {"batch_size": options.batch, "shuffle": True, "seed": options.seed}
    loader = stoker.Loader(train, device=options.device, **options.resident, **kind)
    for epoch in range(options.epochs):
        begun = time.perf_counter()
        loss = torch.stack([step(model, optimizer, batch) for batch in loader]).mean().item()
        took = time.perf_counter() - begun
        model_error, naive_error = errors(model, val, options)
        print(
            f"epoch {epoch + 1}: loss {loss:.4f}, val MAE {model_error:.4f} "
            f"(naive {naive_error:.4f}), {len(train) / took:,.0f} windows/s"
        )


def step(model, optimizer, batch):
    """One step of training; the loss, which is not waited for."""
    x, y, _ = batch
    loss = nn.functional.smooth_l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


@torch.no_grad()
def miss(model, scaler, batch):
    """Absolute errors of the model and of the naive forecast, in the units of the data."""
    x, y, _ = batch
    forecast = model(x)
    naive = x[:, -1, model.label, None]
    real = scaler.inverse(y)
    both = torch.stack([scaler.inverse(forecast), scaler.inverse(naive)])
    return (both - real).abs().flatten(1).sum(1, dtype=torch.float64)


def errors(model, windows, options):
    """Mean absolute errors over a split."""
    loader = stoker.Loader(windows, batch_size=4096, device=options.device)
    total = sum(miss(model, windows.scaler, batch) for batch in loader)
    return (total / len(windows)).tolist()


def walk_forward(model, optimizer, test, options):
    """Moment after moment: forecast all entities, then learn a little from what came."""
    for group in optimizer.param_groups:
        group["lr"] = options.rate / 10
    moments = stoker.Loader(
        test, batch_size=len(test.entities), order="time", device=options.device
    )
    print("walk forward    windows   MAE      naive")
    for day, batches in itertools.groupby(moments, lambda batch: day_of(batch[2], test.time_unit)):
        total, count = 0, 0
        for batch in batches:
            total = total + miss(model, test.scaler, batch)
            count += len(batch[0])
            step(model, optimizer, batch)
        model_error, naive_error = (total / count).tolist()
        print(f"{day!s:<15} {count:>7}   {model_error:<8.4f} {naive_error:.4f}")


def day_of(times, unit):
    """The day of a batch's last window; times are counted from 1970."""
    return numpy.datetime64(int(times[-1]), unit).astype("datetime64[D]")


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=pathlib.Path, default="data/forecast", help="working folder")
    parser.add_argument("--entities", type=int, default=60)
    parser.add_argument("--rows", type=int, default=1500, help="of each entity")
    parser.add_argument("--features", type=int, default=4)
    parser.add_argument("--window", type=int, default=48)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=1e-2, help="of learning")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto", help="a GPU where there is one (auto)")
    parser.add_argument("--quick", action="store_true", help="small data: shows that it works")
    options = parser.parse_args()
    if options.device == "auto":
        options.device = "cuda" if torch.cuda.is_available() else "cpu"
    # A series that fits lives on the GPU: its windows are cut there.
    options.resident = {} if options.device == "cpu" else {"resident": "auto"}
    if options.quick:
        options.entities, options.rows, options.window, options.epochs = 40, 800, 32, 4
    return options


if __name__ == "__main__":
    sys.exit(main())
