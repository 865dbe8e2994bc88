"""The servers themselves, asked by clients that are not ours: what a test says of Stoker must not
be a fault of the server."""

import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from servers.http_engine import depth_of
from store_runs import ACCOUNT, ACCOUNT_KEY, KEYS

SHARD = "bucket/train/shard-0000.tar"


def get(url, **headers):
    request = url if not isinstance(url, str) else urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def test_ranges_are_those_of_the_file(serve, lake):
    server = serve()
    data = (lake / SHARD).read_bytes()
    url = f"{server.url}/{SHARD}"
    assert get(url)[2] == data
    for words, part in (("0-9", data[:10]), ("5-", data[5:]), ("-7", data[-7:])):
        status, headers, body = get(url, Range=f"bytes={words}")
        assert (status, body) == (206, part)
        assert headers["Content-Range"].endswith(f"/{len(data)}")
    assert get(url, Range=f"bytes={len(data)}-")[0] == 416
    assert get(f"{server.url}/none")[0] == 404


def test_a_version_is_matched(serve):
    server = serve()
    url = f"{server.url}/{SHARD}"
    etag = get(url)[1]["ETag"]
    assert get(url, **{"If-Match": etag})[0] == 200
    server.objects.change(SHARD)
    assert get(url, **{"If-Match": etag})[0] == 412


def test_faults_come_as_often_as_they_were_written_down(serve):
    server = serve()
    url = f"{server.url}/{SHARD}"
    server.fault("status", "*.tar", status=503, retry_after=9, after=1, times=2)
    assert [get(url)[0] for _ in range(4)] == [200, 503, 503, 200]
    assert [request.status for request in server.requests] == [200, 503, 503, 200]


def test_requests_are_kept_with_their_headers(serve):
    server = serve()
    get(f"{server.url}/{SHARD}", **{"X-Own": "seen"})
    assert server.requests[0].header("x-own") == "seen" and server.requests[0].holds("seen")


def test_round_trips_are_counted(serve):
    server = serve()
    for _ in range(3):
        get(f"{server.url}/{SHARD}")
    assert depth_of(server.requests) == 3


def s3_client(url, secret):
    boto3 = pytest.importorskip("boto3")
    from botocore.config import Config

    (name,) = KEYS
    return boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=name,
        aws_secret_access_key=secret,
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
    )


def test_amazon_s_own_client_is_let_in_with_the_right_key_only(serve, lake):
    server = serve("s3", page=2)
    server.keys = dict(KEYS)
    (secret,) = KEYS.values()
    client = s3_client(server.url, secret)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix="train/sh")
    found = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
    assert found == [f"train/shard-{number:04d}.tar" for number in range(3)]
    got = client.get_object(Bucket="bucket", Key=found[0], Range="bytes=10-19")
    assert got["Body"].read() == (lake / "bucket" / found[0]).read_bytes()[10:20]
    folders = client.list_objects_v2(Bucket="bucket", Delimiter="/")
    assert [entry["Prefix"] for entry in folders["CommonPrefixes"]] == ["train/"]
    with pytest.raises(Exception, match="SignatureDoesNotMatch"):
        s3_client(server.url, "wrong").list_objects_v2(Bucket="bucket")


def test_amazon_s_own_client_can_upload(serve):
    pytest.importorskip("boto3")
    from boto3.s3.transfer import TransferConfig

    server = serve("s3")
    server.keys = dict(KEYS)
    client = s3_client(server.url, *KEYS.values())
    client.put_object(Bucket="out", Key="one key+", Body=b"abc")
    assert server.objects.made["out/one key+"].body == b"abc"
    import io

    data = bytes(range(256)) * 50_000
    small = TransferConfig(multipart_threshold=1 << 20, multipart_chunksize=5 << 20)
    client.upload_fileobj(io.BytesIO(data), "out", "large", Config=small)
    assert server.objects.made["out/large"].body == data


def test_a_body_that_is_not_what_its_hash_says_is_refused(serve):
    server = serve("s3", object_lock=True)
    hashes = {
        None: (400, b"InvalidRequest"),
        "XUFAKrxLKna5cZ2REBfFkg==": (200, b""),  # of "hello"
        "1B2M2Y8AsgTpgAmY7PhCfg==": (400, b"BadDigest"),  # of nothing
    }
    for told, (status, code) in hashes.items():
        request = urllib.request.Request(
            f"{server.url}/out/a", b"hello", {"Content-MD5": told} if told else {}, method="PUT"
        )
        found, _, body = get(request)
        assert (found, code in body) == (status, True)


def test_azure_s_own_client_is_let_in_with_the_right_key_only(serve, lake):
    blob = pytest.importorskip("azure.storage.blob")
    server = serve("azure", page=2)
    server.keys = {ACCOUNT: ACCOUNT_KEY}
    url = f"{server.url}/{ACCOUNT}"

    def service(key):
        credential = {"account_name": ACCOUNT, "account_key": key}
        return blob.BlobServiceClient(url, credential=credential, retry_total=0)

    container = service(ACCOUNT_KEY).get_container_client("bucket")
    found = [entry.name for entry in container.list_blobs(name_starts_with="train/sh")]
    assert found == [f"train/shard-{number:04d}.tar" for number in range(3)]
    got = container.download_blob(found[0], offset=10, length=10).readall()
    assert got == (lake / "bucket" / found[0]).read_bytes()[10:20]
    container.get_blob_client("up").upload_blob(b"x" * 100)
    assert server.objects.made["bucket/up"].body == b"x" * 100
    data = bytes(range(256)) * 30_000
    client = blob.BlobServiceClient(
        url, credential={"account_name": ACCOUNT, "account_key": ACCOUNT_KEY},
        max_single_put_size=1 << 20, max_block_size=1 << 20,
    )  # fmt: skip
    client.get_blob_client("bucket", "large").upload_blob(data)
    assert server.objects.made["bucket/large"].body == data
    with pytest.raises(Exception, match="AuthenticationFailed"):
        list(service("b3RoZXI=").get_container_client("bucket").list_blobs())


def test_a_data_lake_lists_its_folders(serve):
    server = serve("azure", hierarchical=True)
    _, _, body = get(f"{server.url}/{ACCOUNT}/bucket?restype=container&comp=list")
    assert b"<Name>train</Name>" in body and b"hdi_isfolder" in body


def test_a_reset_and_a_cut_are_seen_as_such(serve):
    server = serve()
    url = f"{server.url}/{SHARD}"
    server.fault("reset", times=1)
    with pytest.raises(ConnectionResetError):
        get(url)
    server.fault("cut", times=1)
    with pytest.raises(Exception, match="IncompleteRead"):
        get(url)


def test_a_server_goes_when_its_process_is_killed(tmp_path):
    """The program it starts goes too."""
    script = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from servers.processes import Program
program = Program(lambda port: [sys.executable, "-m", "http.server", port, "-b", "127.0.0.1"],
                  sys.argv[2])
print(program.process.pid, program.port, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    tests = sys.path[0] if sys.path[0].endswith("tests") else None
    from servers import processes

    tests = tests or processes.__file__.rpartition("/servers/")[0]
    done = subprocess.run(
        [sys.executable, "-c", script, tests, str(tmp_path / "log")], capture_output=True, text=True
    )
    port = int(done.stdout.split()[1])
    deadline = time.monotonic() + 10
    while processes.answers(port) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not processes.answers(port)


def test_the_identity_server_hands_out_what_was_asked_for(identity, tmp_path):
    giver = identity()
    status, _, _ = get(f"{giver.url}/latest/meta-data/iam/security-credentials/")
    assert status == 401
    status, _, body = get(f"{giver.url}/container", Authorization="container-password")
    assert status == 200 and b"ASIATEST" in body
    status, _, body = get(
        f"{giver.url}/msi/token?resource=https://storage.azure.com/",
        **{"X-IDENTITY-HEADER": "identity-password"},
    )
    assert status == 200 and b"bearer-of-the-test" in body
