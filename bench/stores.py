"""stores: the tensors of `tensors` over HTTP, S3 and Azure from servers on loopback, with and
without latency, from the cache, and lists.

Servers: nginx (plain HTTP; as S3 too, for whole objects and ranges need no more), Azurite, and the
fault server of tests/servers (latency, lists). What a server itself can give is shown by a bare
libcurl client on the same extents: where it is hardly faster than Stoker, the server is the limit,
and the ratio to a peer is of CPU seconds a gigabyte, which the row's note says.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from bench import convert, limits, machine, measure, peers, shards
from bench.sides import make_form

sys.path.insert(0, str(measure.ROOT / "tests"))

NEAR = 1.25  # a bare client that is less than so much faster: the server is the limit
IN_FLIGHT = (8, 4, 16)
NAMES = "shard-{0000..%04d}.tar"


def run(options):
    samples = 100 if options.quick else 1000
    seconds = 0.5 if options.quick else 3.0
    data, facts = shards.tensors(samples, 10)
    with contextlib.ExitStack() as stack:
        bench = _Bench(options, data, samples, seconds, stack)
        bench.http()
        bench.s3()
        bench.azure()
        bench.latency()
        bench.cache()
        bench.lists()
        return bench.result(facts)


class _Bench:
    """Servers, sides and rows; one group of sides after the other, each group in turns."""

    def __init__(self, options, data, samples, seconds, stack):
        self.options, self.data, self.samples, self.seconds = options, data, samples, seconds
        self.stack, self.rows, self.ratios = stack, {}, {}
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.cache_folder = shards.DATA / "store-cache"
        stack.callback(shutil.rmtree, self.cache_folder, ignore_errors=True)
        self.nginx = self._start("nginx", self._nginx)

    # --- servers

    def _start(self, name, make):
        from servers.processes import NotAvailable

        try:
            server = make()
        except NotAvailable as reason:
            print(f"  {name}: {reason}", flush=True)
            return None
        self.stack.callback(server.stop)
        return server

    def _nginx(self):
        from servers.nginx_server import Nginx

        return Nginx(self.data.parent, self.folder / "nginx", workers=machine.cores())

    def _fault_server(self, root, *words):
        """In a process of its own, so that its work is not Stoker's."""
        environment = dict(os.environ, PYTHONPATH=str(measure.ROOT / "tests"))
        process = subprocess.Popen(
            [sys.executable, "-m", "servers.fault_server", str(root), *map(str, words)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.stack.callback(process.wait)
        self.stack.callback(process.stdin.close)
        return process.stdout.readline().strip()

    # --- sides

    def _own(self, name, source, note, *words, environment=None):
        command = measure.python(
            *("bench.store_sides", "stoker", source, "--seconds", self.seconds, *words)
        )
        return measure.Side(name, _with(environment, command), note)

    def _peer(self, name, side, module, source, note, workers, environment=None):
        """A peer with the number of workers or threads that suits it best here."""
        why = peers.missing(module)
        if why:
            return measure.Side(name, [], note, missing=why)
        tried = []
        for count in workers[:1] if self.options.quick else workers:
            command = measure.python(
                *("bench.store_sides", side, source, "--samples", self.samples),
                *("--workers", count, "--seconds", self.seconds / 2),
                interpreter=peers.PYTHON,
            )
            words = f"{peers.version(module)}, {count} workers: {note}"
            tried.append(measure.Side(name, _with(environment, command), words))
        best = measure.best_of(tried) if len(tried) > 1 else tried[0]
        best.command[-1] = str(self.seconds)
        return best

    def _bare(self, name, base, part=None):
        """libcurl's own best: so many ranges in flight as suit it. part: of this shard only."""
        ranges = self.folder / f"{name}.txt"
        with open(ranges, "w") as out:
            for line in (self.data / "extents.txt").read_text().splitlines():
                offset, length, shard = line.split()
                if part in (None, shard):
                    out.write(f"{offset} {length} {base}/{shard}\n")
        tried = []
        for count in IN_FLIGHT[:1] if self.options.quick else IN_FLIGHT:
            words = f"a plain libcurl multi client: a range a sample, {count} in flight"
            side = limits.side("limit_http", ranges, count, self.seconds, note=words)
            side.name = name
            tried.append(side)
        return measure.best_of(tried) if len(tried) > 1 else tried[0]

    def _measure(self, sides, unit="bytes/s", runs=0):
        measure.alternate(sides, runs or self.options.runs)
        for side in sides:
            row = self.rows[side.name] = measure.row(side, unit)
            if side.name == "libcurl" and row["value"]:
                # its few connections may all fall to one of nginx's workers: the best run counts
                row["value"] = max(row["runs"])
                row["note"] += "; its best run"

    def _ratio(self, key, own, other, bare=None):
        """own over other; of CPU seconds a gigabyte where the server is the limit."""
        mine, its = self.rows.get(own), self.rows.get(other)
        if not mine or not its or not mine["value"] or not its["value"]:
            return
        limit = self.rows.get(bare)
        near = limit and limit["value"] and limit["value"] < NEAR * mine["value"]
        if near and mine.get("cpu_s_per_gb") and its.get("cpu_s_per_gb"):
            self.ratios[key] = its["cpu_s_per_gb"] / mine["cpu_s_per_gb"]
            words = f"{key}: the server is the limit, the ratio is of CPU seconds a gigabyte"
            mine["note"] = "; ".join(filter(None, (mine["note"], words)))
            return
        self.ratios[key] = mine["value"] / its["value"]

    # --- groups

    def http(self):
        if self.nginx is None:
            return
        base = f"{self.nginx.url}/{self.data.name}"
        source = f"{base}/{NAMES % 9}"
        sides = [
            self._own("http", source, "tar shards from nginx, ranges"),
            self._bare("libcurl", base),
            self._peer(
                *("webdataset", "webdataset", "webdataset", base),
                "pipe:curl, shards shuffled, buffer of 100 samples", (0, 2, 4),
            ),
        ]  # fmt: skip
        self._measure(sides)
        self._ratio("http/libcurl", "http", "libcurl")
        self._ratio("http/webdataset", "http", "webdataset")

    def s3(self):
        if self.nginx is None:
            return
        environment = {
            "AWS_ENDPOINT_URL": self.nginx.url,
            "AWS_ACCESS_KEY_ID": "AKIABENCH",
            "AWS_SECRET_ACCESS_KEY": "bench",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        bucket = self.data.name
        whole = "whole objects of 1.2 MB, a batch read ahead"
        sides = [
            self._own("s3", f"s3://{bucket}/{NAMES % 9}", "tar shards from nginx, ranges, signed",
                      environment=environment),
            self._peer("s3fs", "s3fs", "s3fs", bucket, whole, (0,), environment),
            self._peer("boto3", "boto3", "boto3", bucket, whole, (1, 4, 16), environment),
            *self._peers_with_forms(bucket, environment),
        ]  # fmt: skip
        self._measure(sides)
        self._ratio("s3/s3fs", "s3", "s3fs", "libcurl")
        self._ratio("s3/boto3", "s3", "boto3", "libcurl")

    def _peers_with_forms(self, bucket, environment):
        """Mosaic and LitData."""
        found = []
        for name, module in ("mosaic", "streaming"), ("litdata", "litdata"):
            words = "its own shards, downloaded to the disk each epoch"
            why = peers.missing(module) or make_form(name, self.data, convert)
            if why:
                found.append(measure.Side(name, [], words, missing=why))
                continue
            source = f"{bucket}/{convert.FORMS[name]}"
            found.append(self._peer(name, name, module, source, words, (0, 2), environment))
        return found

    def azure(self):
        """A part of the data: Azurite takes and gives slowly."""
        from servers.azurite_server import ACCOUNT, Azurite

        why = peers.missing("azure.storage.blob")
        server = self._start("azurite", lambda: Azurite(self.folder / "azurite"))
        if server is None or why:
            reason = why or "Azurite is not there"
            self.rows["azure"] = measure.row(measure.Side("azure", [], "", reason), "bytes/s")
            return
        part = min(self.samples, 100)
        self._fill_azurite(server, part)
        environment = server.environment()
        kept, self.samples = self.samples, part
        sides = [
            self._own("azure", f"az://{ACCOUNT}/bench/shard-0000.tar", "a tar shard from Azurite",
                      environment=environment),
            self._peer("azure_sdk", "azure_sdk", "azure.storage.blob", "bench",
                       "whole objects of 1.2 MB, a batch read ahead", (1, 4, 16), environment),
            self._bare("libcurl_azurite", f"{server.url}/bench", "shard-0000.tar"),
        ]  # fmt: skip
        self._measure(sides)
        self.samples = kept
        self._ratio("azure/sdk", "azure", "azure_sdk", "libcurl_azurite")

    def _fill_azurite(self, server, part):
        """By the peers' client. Everybody may read it: the bare client signs nothing."""
        program = (
            "import sys, pathlib\n"
            "from azure.storage.blob import BlobServiceClient\n"
            "service = BlobServiceClient.from_connection_string(sys.argv[1])\n"
            "service.create_container('bench', public_access='container')\n"
            "folder = pathlib.Path(sys.argv[2])\n"
            "names = [f'loose/{n:06d}.npy' for n in range(int(sys.argv[3]))]\n"
            "for name in ['shard-0000.tar', *names]:\n"
            "    with open(folder / name, 'rb') as file:\n"
            "        service.get_blob_client('bench', name).upload_blob(file)\n"
        )
        print("  filling Azurite", flush=True)
        words = [peers.PYTHON, "-c", program, server.connection_string, self.data, part]
        subprocess.run(list(map(str, words)), check=True, capture_output=True)

    def latency(self):
        sides = []
        for name, delay in ("latency0", 0), ("latency20", 0.02):
            url = self._fault_server(self.data, "--latency", delay)
            words = f"tar shards from the fault server, {delay * 1000:.0f} ms before each answer"
            sides.append(self._own(name, f"{url}/{NAMES % 9}", words))
        self._measure(sides)
        self._ratio("latency20/latency0", "latency20", "latency0")

    def cache(self):
        if self.nginx is None:
            return
        source = f"{self.nginx.url}/{self.data.name}/{NAMES % 9}"
        size = sum(path.stat().st_size for path in self.data.glob("shard-*.tar"))
        # what data on a network is read in unless it is said
        order = ("--order", "local", "--warm", 1)
        whole = ("--cache", self.cache_folder / "whole", "--cache-size", 2 * size, "--warm", 1)
        half = ("--cache", self.cache_folder / "half", "--cache-size", size // 2, "--warm", 2)
        sides = [
            self._own("local", f"{self.data}/{NAMES % 9}", "the same shards as files", *order),
            self._own("cached", source, "all of it in the cache", *whole),
            self._own("halfcache", source, "the cache holds half of it", *half),
            self._own("link", source, "the same without a cache"),
        ]
        # copies within memory: a process is 20 or 28 GB/s fast by where its pages happen to lie
        self._measure(sides, runs=1 if self.options.quick else 3 * self.options.runs)
        self._ratio("cached/local", "cached", "local")
        values = [self.rows[name]["value"] for name in ("local", "link", "halfcache")]
        if all(values):
            local, link, measured = values
            self.ratios["halfcache/model"] = measured / (1 / (0.5 / local + 0.5 / link))

    def lists(self):
        count = 1000 if self.options.quick else 10_000
        url = self._fault_server(self.folder, "--kind", "s3", "--sequence", count)
        environment = {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "AKIABENCH",
            "AWS_SECRET_ACCESS_KEY": "bench",
            "AWS_REGION": "us-east-1",
            "XDG_CACHE_HOME": str(self.folder / "home"),
        }
        own = measure.python(
            *("bench.store_sides", "list_stoker", "s3://many/", "--seconds", self.seconds)
        )
        bare = measure.python(
            *("bench.store_sides", "list_bare", f"{url}/many", "--seconds", self.seconds)
        )
        sides = [
            measure.Side("list", _with(environment, own), f"{count} objects listed and opened"),
            measure.Side("bare_list", bare, "the list calls alone"),
        ]
        self._measure(sides, "s")
        self._ratio("list/bare", "list", "bare_list")

    # --- the whole

    def result(self, facts):
        workload = {
            "samples": self.samples,
            "bytes": facts["bytes"],
            "shards": 10,
            "dtype": "float16",
            "shape": facts["shape"],
            "batch_size": 32,
            "shuffle": True,
            "servers": "loopback",
        }
        limit = self.rows.get("libcurl") or measure.row(
            measure.Side("libcurl", [], "", "nginx is not there"), "bytes/s"
        )
        words = "libcurl's multi interface: a range a sample from nginx"
        return {
            "workload": workload,
            "limit": limits.section(limit, words),
            "rows": list(self.rows.values()),
            "ratios": self.ratios,
        }


def _with(environment, command):
    """A command with more environment, by env(1)."""
    words = [f"{name}={value}" for name, value in (environment or {}).items()]
    return ["env", *words, *command] if words else command
