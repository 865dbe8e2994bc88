"""The same data set, wherever it lies: equal digests, equal order; only the base path changes."""

import json
import os
import subprocess
import sys

import pytest
from store_runs import ACCOUNT, ACCOUNT_KEY, BATCH, KEYS, ROOT, environment_of

ALL = pytest.mark.parametrize("kind", ["http", "s3", "az", "abfss", "gs"])


@ALL
def test_every_store_gives_the_same_bytes_as_files(place, expected, kind):
    _server, stoker, source = place(kind)
    assert stoker.digest(source) == expected


@ALL
def test_the_order_is_the_same_as_of_files(place, lake, kind):
    _server, stoker, source = place(kind)
    for more in (("--shuffle", "--seed", 3), ("--shuffle", "--shuffle-order", "local")):
        wanted = stoker("stream", lake / "bucket" / "train", *BATCH, *more, "--order").stdout
        assert stoker("stream", source, *BATCH, *more, "--order").stdout == wanted


@ALL
def test_threads_and_ranks_do_not_change_what_comes(place, lake, kind):
    _server, stoker, source = place(kind)
    ranks = ("--shuffle", "--world-size", 2, "--rank", 1)
    wanted = stoker.digest(lake / "bucket" / "train", *ranks)
    for threads in (1, 4):
        assert stoker.digest(source, "--threads", threads, *ranks) == wanted


@ALL
def test_an_index_is_made_once(place, expected, kind):
    server, stoker, source = place(kind)
    assert stoker.digest(source) == expected
    server.forget()
    stoker("ls", source)
    assert server.reads(".tar") == []


@ALL
def test_one_sample_can_be_looked_at(place, lake, kind):
    _server, stoker, source = place(kind)
    local = stoker("cat", lake / "bucket" / "train", 7, "cls").stdout
    assert stoker("cat", source, 7, "cls").stdout == local
    names = stoker("ls", lake / "bucket" / "train", "--json").stdout.splitlines()
    there = stoker("ls", source, "--json").stdout.splitlines()
    assert [json.loads(line)["key"] for line in there] == [
        json.loads(line)["key"] for line in names
    ]
    assert stoker.json("verify", source)["bad"] == []


@ALL
def test_a_missing_object_is_told_as_that(place, kind):
    _server, stoker, source = place(kind)
    missing = source.replace("train", "nowhere")
    words = stoker.fails(missing, "--timeout", "5")
    assert "nowhere" in words


def test_moto_gives_the_same_bytes(moto, stoker, expected):
    command = stoker.with_environment(**moto.environment())
    assert command.digest("s3://bucket/train") == expected
    assert command.digest("s3://bucket/train/shard-*.tar", "--epochs", 1) == expected


def test_azurite_gives_the_same_bytes(azurite, stoker, expected):
    command = stoker.with_environment(**azurite.environment())
    assert command.digest(f"az://{ACCOUNT}/bucket/train") == expected
    assert command.digest(f"abfss://bucket@{ACCOUNT}.dfs.core.windows.net/train") == expected


def test_azurite_takes_a_shared_access_signature(azurite, stoker, expected):
    from datetime import UTC, datetime, timedelta

    from azure.storage.blob import ContainerSasPermissions, generate_container_sas
    from servers.azurite_server import KEY

    token = generate_container_sas(
        ACCOUNT,
        "bucket",
        account_key=KEY,
        permission=ContainerSasPermissions(read=True, list=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    connection = f"BlobEndpoint={azurite.url};SharedAccessSignature={token}"
    command = stoker.with_environment(AZURE_STORAGE_CONNECTION_STRING=connection)
    assert command.digest(f"az://{ACCOUNT}/bucket/train") == expected


def test_nginx_gives_the_same_bytes(nginx, certificates, stoker, expected):
    names = "bucket/train/shard-{0000..0002}.tar"
    assert stoker.digest(f"{nginx.url}/{names}") == expected
    for kind in ("good", "http2"):
        assert stoker.digest(f"{nginx.tls[kind]}/{names}", "--ca", certificates.ca) == expected


@pytest.mark.parametrize("kind", ["expired", "other name"])
def test_nginx_with_a_bad_certificate_is_refused(nginx, certificates, stoker, kind):
    source = f"{nginx.tls[kind]}/bucket/train/shard-0000.tar"
    assert "certificate" in stoker.fails(source, "--ca", certificates.ca, "--timeout", 5).lower()


def test_directories_of_a_data_lake_are_no_objects(place, expected):
    """ADLS Gen2 lists folders as entries: those are no shards."""
    for kind in ("az", "abfss"):
        _server, stoker, source = place(kind, hierarchical=True)
        assert stoker.digest(source) == expected
        assert stoker.digest(f"{source}/*.tar") == expected


def test_a_data_lake_with_nested_folders_is_read_whole(place, lake, stoker):
    server, stoker, _ = place("az", hierarchical=True)
    for number, shard in enumerate(sorted((lake / "bucket" / "train").glob("*.tar"))):
        server.objects.put(f"deep/a/b{number}/c/shard.tar", shard.read_bytes())
    assert stoker.stream(f"az://{ACCOUNT}/deep/a")["samples"] == 48
    assert stoker.stream(f"az://{ACCOUNT}/deep/a/**/*.tar")["samples"] == 48


def test_virtual_style_puts_the_bucket_into_the_host(place, expected):
    """localhost and all below it are this machine (RFC 6761)."""
    server, stoker, source = place("s3")
    (stoker.home / ".aws").mkdir()
    config = stoker.home / ".aws" / "config"
    config.write_text("[default]\ns3 =\n  addressing_style = virtual\n")
    command = stoker.with_environment(AWS_ENDPOINT_URL=f"http://localhost:{server.port}")
    assert command.digest(source) == expected
    hosts = {request.header("Host").partition(":")[0] for request in server.requests}
    assert hosts <= {"bucket.localhost", "localhost"}


def test_anonymous_requests_are_not_signed(place, expected):
    server, stoker, source = place("s3")
    server.keys = {}
    command = stoker.with_environment(
        AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None, STOKER_S3_ANONYMOUS="1"
    )
    assert command.digest(source) == expected
    assert all(request.header("Authorization") is None for request in server.requests)


def test_the_requester_pays_where_the_variable_says_so(place, expected):
    server, stoker, source = place("s3")
    command = stoker.with_environment(STOKER_S3_REQUESTER_PAYS="1")
    assert command.digest(source) == expected
    assert all(r.header("x-amz-request-payer") == "requester" for r in server.requests)


def test_local_and_remote_in_one_set_are_refused_in_words(place, lake):
    _server, stoker, source = place()
    local = lake / "bucket" / "train" / "shard-0000.tar"
    done = stoker("stream", local, source, *BATCH, status=None)
    assert done.returncode != 0 and done.stderr.startswith("stoker: ")


@pytest.mark.parametrize(
    "source", ["s3://", "s3:///key", "az://only", "abfss://x/y", "http://", "gs://"]
)
def test_uris_that_are_not_whole_are_told(stoker, source):
    done = stoker("stream", source, *BATCH, "--timeout", 3, status=None)
    assert done.returncode in (1, 2) and done.stderr.startswith("stoker: ")


def test_a_password_in_a_uri_is_refused_and_not_repeated(stoker):
    done = stoker(
        *("stream", "http://user:pass-word-1@127.0.0.1:1/a.tar", *BATCH, "--timeout", 3),
        status=None,
    )
    assert done.returncode in (1, 2) and "pass-word-1" not in done.stderr


@pytest.mark.parametrize("kind", ["http", "s3", "az"])
def test_checking_a_uri_says_what_works(place, kind):
    _server, stoker, source = place(kind)
    source = source.replace("{0000..0002}", "0000")
    told = stoker("check", source, "--timeout", 10).stdout
    assert "latency" in told.lower() and "MB/s" in told


@pytest.mark.parametrize("kind", ["file", "s3", "abfss"])
def test_the_training_example_learns_the_same_from_everywhere(serve, stoker, tmp_path, kind):
    """Only --data changes."""
    pytest.importorskip("torch")
    pytest.importorskip("stoker")
    stoker(
        *("gen", "tensors", "-o", tmp_path / "lake" / "bucket" / "train", "--shards", 2),
        *("--samples", 40, "--shape", "4,16,16,3", "--dtype", "f16", "--classes", 4),
    )
    server = None
    more = {}
    data = str(tmp_path / "lake" / "bucket" / "train")
    if kind != "file":
        server = serve("s3" if kind == "s3" else "azure", root=tmp_path / "lake")
        server.keys = dict(KEYS) if kind == "s3" else {ACCOUNT: ACCOUNT_KEY}
        more = environment_of(kind, server)
        data = {
            "s3": "s3://bucket/train",
            "abfss": f"abfss://bucket@{ACCOUNT}.dfs.core.windows.net/train",
        }[kind]
    program = f"""
import sys, json, torch
sys.path.insert(0, {str(ROOT / "examples" / "streaming")!r})
torch.set_num_threads(1)
import training
result = training.train({data!r}, epochs=2, batch_size=8, classes=4, device="cpu")
log = result["epochs"] if isinstance(result, dict) else result
print(json.dumps([[e["loss"], e["held_out_accuracy"]] for e in log]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
        env={**os.environ, **{k: v for k, v in stoker.environment.items()
                              if k.startswith(("AWS_", "AZURE_", "GCE_", "HOME", "XDG"))}, **more},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    losses = json.loads(done.stdout.splitlines()[-1])
    known = _losses.setdefault("seen", losses)
    assert losses == known


_losses = {}
