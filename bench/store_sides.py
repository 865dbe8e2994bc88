"""The sides of `stores`: each reads the same tensors once and again, and says how fast.

python -m bench.store_sides SIDE SOURCE [--seconds S] [--workers N] [--shards N] [--samples N]
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import time
import urllib.parse

from bench import measure

BATCH = 32


def touch(batch):
    """Reads a byte of each page, as every consumer here does."""
    return int(batch.view(-1).view(_byte()).contiguous()[::4096].sum())


def _byte():
    import torch

    return torch.uint8


# --- Stoker


def stoker_epochs(options):
    """Shuffled batches by the loader, from whatever URI the source is."""
    import stoker

    more = {}
    if options.cache:
        more = {"cache": options.cache, "cache_size": options.cache_size}
    dataset = stoker.open(options.source, **more)
    order = {"order": options.order} if options.order else {}
    loader = stoker.Loader(dataset, batch_size=BATCH, shuffle=True, fields=("npy",), **order)

    def epoch():
        samples = size = 0
        for (batch,) in loader:
            touch(batch)
            samples += len(batch)
            size += batch.numel() * batch.element_size()
        return samples, size

    for _ in range(options.warm):
        epoch()
    return measure.timed_epochs(epoch, options.seconds)


# --- peers: whole objects, one a sample, or whole shards


def names_of(options):
    return [f"loose/{number:06d}.npy" for number in range(options.samples)]


def shuffled(names):
    import random

    names = list(names)
    random.Random(0).shuffle(names)
    return names


def stack(bodies):
    """Bodies of .npy objects as one tensor."""
    import io

    import numpy
    import torch

    return torch.from_numpy(numpy.stack([numpy.load(io.BytesIO(body)) for body in bodies]))


def object_epochs(options, get_many):
    """get_many(names) -> bodies, a batch at a time; batches are read ahead by one thread."""
    names = shuffled(names_of(options))
    batches = [names[at : at + BATCH] for at in range(0, len(names), BATCH)]

    def epoch():
        samples = size = 0
        with concurrent.futures.ThreadPoolExecutor(1) as ahead:
            waiting = ahead.submit(get_many, batches[0])
            for number in range(len(batches)):
                bodies = waiting.result()
                if number + 1 < len(batches):
                    waiting = ahead.submit(get_many, batches[number + 1])
                batch = stack(bodies)
                touch(batch)
                samples += len(batch)
                size += batch.numel() * batch.element_size()
        return samples, size

    return measure.timed_epochs(epoch, options.seconds)


def boto3_epochs(options):
    import boto3
    from botocore.config import Config

    bucket = options.source
    client = boto3.client("s3", config=Config(max_pool_connections=64))
    pool = concurrent.futures.ThreadPoolExecutor(max(1, options.workers))

    def get(name):
        return client.get_object(Bucket=bucket, Key=name)["Body"].read()

    return object_epochs(options, lambda names: list(pool.map(get, names)))


def s3fs_epochs(options):
    import s3fs

    system = s3fs.S3FileSystem(endpoint_url=os.environ["AWS_ENDPOINT_URL"])

    def get_many(names):
        paths = [f"{options.source}/{name}" for name in names]
        found = system.cat(paths)
        return [found[path] for path in paths]

    return object_epochs(options, get_many)


def azure_epochs(options):
    from azure.storage.blob import BlobServiceClient

    service = BlobServiceClient.from_connection_string(
        os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    )
    container = service.get_container_client(options.source)
    pool = concurrent.futures.ThreadPoolExecutor(max(1, options.workers))

    def get(name):
        return container.download_blob(name).readall()

    return object_epochs(options, lambda names: list(pool.map(get, names)))


def webdataset_epochs(options):
    """As its documentation has it for HTTP: a curl a shard, in workers."""
    import torch
    import webdataset

    urls = [
        f"pipe:curl -s -f {options.source}/shard-{number:04d}.tar"
        for number in range(options.shards)
    ]
    dataset = (
        webdataset.WebDataset(urls, shardshuffle=options.shards, empty_check=False)
        .shuffle(100)
        .decode()
        .to_tuple("npy")
        .map_tuple(torch.from_numpy)
        .batched(BATCH)
    )
    loader = webdataset.WebLoader(
        dataset,
        batch_size=None,
        num_workers=options.workers,
        persistent_workers=options.workers > 0,
    )

    def epoch():
        samples = size = 0
        for (batch,) in loader:
            touch(batch)
            samples += len(batch)
            size += batch.numel() * batch.element_size()
        return samples, size

    return measure.timed_epochs(epoch, options.seconds)


def mosaic_epochs(options):
    """Mosaic Streaming from the S3 endpoint; what it downloaded stays on the disk, as it wants."""
    import shutil
    import tempfile

    from bench import loaders

    loaders.import_streaming()
    import streaming
    import torch

    os.environ["S3_ENDPOINT_URL"] = os.environ["AWS_ENDPOINT_URL"]
    folder = tempfile.mkdtemp(dir=options.cache or None)

    def epoch():
        shutil.rmtree(folder, ignore_errors=True)
        streaming.base.util.clean_stale_shared_memory()
        dataset = streaming.StreamingDataset(
            remote=f"s3://{options.source}", local=folder, shuffle=True, batch_size=BATCH
        )
        loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, num_workers=options.workers)
        samples = size = 0
        for batch in loader:
            values = next(value for value in batch.values() if hasattr(value, "numel")
                          and value.dim() > 2)  # fmt: skip
            touch(values)
            samples += len(values)
            size += values.numel() * values.element_size()
        return samples, size

    try:
        return measure.timed_epochs(epoch, options.seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def litdata_epochs(options):
    import shutil
    import tempfile

    import litdata
    from litdata.streaming import downloader

    # It insists on TLS, which the server here does not speak.
    known = getattr(downloader, "_OBSTORE_CLIENT_OPTIONS", {})
    downloader._OBSTORE_CLIENT_OPTIONS = {**known, "allow_http": True}
    folder = tempfile.mkdtemp(dir=options.cache or None)

    def epoch():
        shutil.rmtree(folder, ignore_errors=True)
        dataset = litdata.StreamingDataset(
            f"s3://{options.source}",
            cache_dir=folder,
            shuffle=True,
            storage_options={"endpoint_url": os.environ["AWS_ENDPOINT_URL"]},
        )
        loader = litdata.StreamingDataLoader(dataset, batch_size=BATCH, num_workers=options.workers)
        samples = size = 0
        for batch in loader:
            parts = batch.values() if isinstance(batch, dict) else batch
            values = next(value for value in parts if hasattr(value, "numel") and value.dim() > 2)
            touch(values)
            samples += len(values)
            size += values.numel() * values.element_size()
        return samples, size

    try:
        return measure.timed_epochs(epoch, options.seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- lists


def list_stoker(options):
    """Seconds in which a set of 10,000 objects is listed and opened, its index being there."""
    import stoker

    stoker.open(options.source)
    return _best(lambda: stoker.open(options.source), options.seconds, fresh=True)


def list_bare(options):
    """Seconds of the list calls alone, one after the other on one connection."""
    url = urllib.parse.urlsplit(options.source)

    def lists():
        connection = http.client.HTTPConnection(url.netloc)
        token, pages = "", 0
        while True:
            more = f"&continuation-token={urllib.parse.quote(token)}" if token else ""
            connection.request("GET", f"{url.path}?list-type=2&max-keys=1000{more}")
            body = connection.getresponse().read()
            pages += 1
            mark = body.find(b"<NextContinuationToken>")
            if mark < 0:
                return
            end = body.find(b"<", mark + 23)
            token = body[mark + 23 : end].decode()

    return _best(lists, options.seconds)


def _best(call, seconds, fresh=False):
    """The median of several calls; fresh: each in a process of its own, since one lists once."""
    took, begun = [], time.perf_counter()
    while not took or time.perf_counter() - begun < seconds:
        took.append(_in_child(call) if fresh else _timed(call))
    return {"value": sorted(took)[len(took) // 2], "calls": len(took)}


def _timed(call):
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _in_child(call):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        took = _timed(call)
        os.write(writing, repr(took).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        answer = told.read()
    os.waitpid(child, 0)
    return float(answer)


SIDES = {
    "stoker": stoker_epochs,
    "boto3": boto3_epochs,
    "s3fs": s3fs_epochs,
    "azure_sdk": azure_epochs,
    "webdataset": webdataset_epochs,
    "mosaic": mosaic_epochs,
    "litdata": litdata_epochs,
    "list_stoker": list_stoker,
    "list_bare": list_bare,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("source")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--warm", type=int, default=0, help="epochs before the first that counts")
    parser.add_argument("--cache", default="")
    parser.add_argument("--cache-size", default="")
    parser.add_argument("--order", default="")
    options = parser.parse_args()
    answer = SIDES[options.side](options)
    answer.setdefault("value", answer.get("bytes_per_s"))
    if answer.get("cpu_s") and answer.get("bytes_out"):
        answer["cpu_s_per_gb"] = answer["cpu_s"] / answer["bytes_out"] * 1e9
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
