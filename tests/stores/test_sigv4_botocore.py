"""What the command signs is what AWS's own library would have signed."""

import shutil

import pytest
from store_runs import KEYS

auth = pytest.importorskip("botocore.auth", reason="botocore is not installed")
awsrequest = pytest.importorskip("botocore.awsrequest")
credentials = pytest.importorskip("botocore.credentials")

(NAME, SECRET), *_ = KEYS.items()


def parts_of(authorization):
    """{"Credential": ..., "SignedHeaders": ..., "Signature": ...}"""
    words = authorization.removeprefix("AWS4-HMAC-SHA256 ").split(", ")
    return dict(word.split("=", 1) for word in words)


def signature_of(request, host, token=None):
    """Botocore's signature of a request that a server saw."""
    told = parts_of(request.header("Authorization"))
    _name, _day, region, service, _end = told["Credential"].split("/")
    signed = {
        name: request.header(name) for name in told["SignedHeaders"].split(";") if name != "host"
    }
    again = awsrequest.AWSRequest(
        request.method, f"http://{host}{request.target}", headers={**signed, "host": host}
    )
    again.context["timestamp"] = request.header("x-amz-date")
    signer = auth.S3SigV4Auth(credentials.Credentials(NAME, SECRET, token), service, region)
    text = signer.string_to_sign(again, signer.canonical_request(again))
    return signer.signature(text, again)


def check_all(server, token=None):
    methods = set()
    for request in server.requests:
        told = parts_of(request.header("Authorization"))["Signature"]
        assert told == signature_of(request, request.header("Host"), token), request.target
        methods.add(request.method)
    return methods


@pytest.mark.parametrize("folder", ["train", "with blank", "50%+é~(1)'!", "a=b&c;d,e@f:g$h"])
def test_reads_and_lists_are_signed_as_botocore_signs_them(place, lake, tmp_path, folder):
    root = tmp_path / "odd"
    shutil.copytree(lake / "bucket" / "train", root / "bucket" / folder)
    server, stoker, _source = place("s3", root=root)
    stoker.digest(f"s3://bucket/{folder}")
    assert "GET" in check_all(server)


def test_a_session_token_is_signed_as_botocore_signs_it(place):
    server, stoker, source = place("s3")
    server.sessions = {"token/of+the=session"}
    stoker.with_environment(AWS_SESSION_TOKEN="token/of+the=session").digest(source)
    check_all(server, "token/of+the=session")


def test_uploads_are_signed_as_botocore_signs_them(place, tmp_path):
    server, stoker, _source = place("s3")
    stoker(
        *("gen", "tensors", "-o", tmp_path / "large", "--shards", 1, "--samples", 9),
        *("--shape", "1000000", "--dtype", "u8"),
    )
    stoker("pack", tmp_path / "large", "-o", "s3://out/p q", "--to", "tar", "--shard-size", "1GiB")
    assert {"PUT", "POST"} <= check_all(server)
