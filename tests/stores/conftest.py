"""Servers and data for the tests of stores. What cannot be had here is skipped with the reason."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from servers.azurite_server import Azurite
from servers.certificates import Certificates
from servers.fault_server import FaultServer
from servers.identity_server import IdentityServer
from servers.moto_server import Moto
from servers.nginx_server import Nginx
from servers.processes import NotAvailable
from store_runs import (
    ACCOUNT,
    ACCOUNT_KEY,
    BINARY,
    KEYS,
    SERVER_OF,
    Command,
    environment_of,
    source_of,
)


def pytest_addoption(parser):
    parser.addoption(
        "--long", action="store", type=float, default=4.0, metavar="SECONDS",
        help="how long the run against a bad server lasts (4; the bar is 60)",
    )  # fmt: skip


@pytest.fixture
def stoker(tmp_path):
    if not BINARY.exists():
        pytest.fail(f"{BINARY} is not there: run make first")
    (tmp_path / "home").mkdir()
    return Command(tmp_path / "home")


@pytest.fixture(scope="session")
def lake(tmp_path_factory):
    """A folder whose bucket/train has 48 tensors of 64 KiB in 3 shards of a MiB each."""
    root = tmp_path_factory.mktemp("lake")
    command = Command(tmp_path_factory.mktemp("home"))
    command(
        *("gen", "tensors", "-o", root / "bucket" / "train", "--shards", 3, "--samples", 48),
        *("--shape", "64,64,4", "--dtype", "f32", "--classes", 5, "--seed", 1),
    )
    # what the command keeps beside the data is not the data
    for path in (root / "bucket" / "train").iterdir():
        assert path.suffix == ".tar" or path.name.startswith("."), path
    return root


@pytest.fixture(scope="session")
def expected(lake, tmp_path_factory):
    """The digest of the data set, read from files."""
    return Command(tmp_path_factory.mktemp("home")).digest(lake / "bucket" / "train")


@pytest.fixture
def serve(lake):
    """serve(kind, **options): a fault server of the lake; stopped after the test."""
    running = []

    def start(kind="http", root=lake, **options):
        running.append(FaultServer(root, kind=kind, **options))
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def place(serve, stoker):
    """place(kind): (server, command, source) of the data set there; signatures are checked."""

    def make(kind="http", **options):
        server = serve(SERVER_OF[kind], **options)
        if kind == "s3":
            server.keys = dict(KEYS)
        if SERVER_OF[kind] == "azure":
            server.keys = {ACCOUNT: ACCOUNT_KEY}
        command = stoker.with_environment(**environment_of(kind, server))
        return server, command, source_of(kind, server)

    return make


@pytest.fixture
def identity():
    """identity(**options): a server that hands out credentials; stopped after the test."""
    running = []

    def start(**options):
        running.append(IdentityServer(**options))
        return running[-1]

    yield start
    for server in running:
        server.stop()


def _or_skip(make):
    try:
        return make()
    except NotAvailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return _or_skip(lambda: Certificates(tmp_path_factory.mktemp("certificates")))


@pytest.fixture(scope="session")
def nginx(lake, certificates, tmp_path_factory):
    server = _or_skip(lambda: Nginx(lake, tmp_path_factory.mktemp("nginx"), certificates))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def moto(lake, tmp_path_factory):
    server = _or_skip(lambda: Moto(tmp_path_factory.mktemp("moto")))
    server.fill("bucket", lake / "bucket")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def azurite(lake, tmp_path_factory):
    server = _or_skip(lambda: Azurite(tmp_path_factory.mktemp("azurite")))
    server.fill("bucket", lake / "bucket")
    yield server
    server.stop()
