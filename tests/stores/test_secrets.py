"""No secret is in anything that we write: messages, traces, indexes, JSON, cache files, cores."""

import os
import pathlib
import resource
import signal
import time

import pytest
from store_runs import ACCOUNT, BATCH

AWS_SECRET = "aws-secret-k3y-XyZZy"
AWS_SESSION = "aws-session-t0ken-XyZZy"
SAS = "sas-s1gnature-XyZZy"
BEARER = "bearer-t0ken-XyZZy"
MARK = "XyZZy"
FAULTS = ["none", "refused", "missing", "throttled", "slow", "redirected", "broken"]


def spoil(server, fault):
    if fault == "refused":
        server.fault("status", "*.tar", status=403, code="AccessDenied", after=1)
    elif fault == "missing":
        server.fault("status", "*.tar", status=404, code="NoSuchKey", after=1)
    elif fault == "throttled":
        server.fault("status", "*.tar", status=503, code="SlowDown")
    elif fault == "slow":
        server.fault("trickle", "*.tar", method="GET")
    elif fault == "redirected":
        server.fault("redirect", "*.tar", to=f"{server.url}/*")
    elif fault == "broken":
        server.fault("error in 200", "*")


def assert_no_secret_in(folder, *texts):
    for text in texts:
        assert MARK not in text
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_file() and not path.name.startswith("given"):
            assert MARK.encode() not in path.read_bytes(), path


def run_all(command, source, folder):
    """Everything that writes: returns what was printed."""
    printed = []
    options = ("--timeout", 2)
    for words in (
        ("index", source),
        ("stream", source, *BATCH, "--json", "--trace", folder / "trace.json", "--cache",
         folder / "cache", "--epochs", 2, "--save-state", folder / "state"),
        ("ls", source, "--json"),
        ("verify", source, "--json"),
        ("check", source, "--json"),
    ):  # fmt: skip
        done = command(*words, *options, status=None)
        printed += [done.stdout, done.stderr]
    return printed


@pytest.mark.parametrize("fault", FAULTS)
def test_no_aws_secret_is_written_anywhere(serve, stoker, tmp_path, fault):
    server = serve("s3")
    server.keys = {"AKIAGREP": AWS_SECRET}
    spoil(server, fault)
    command = stoker.with_environment(
        AWS_ENDPOINT_URL=server.url,
        AWS_ACCESS_KEY_ID="AKIAGREP",
        AWS_SECRET_ACCESS_KEY=AWS_SECRET,
        AWS_SESSION_TOKEN=AWS_SESSION,
        AWS_REGION="us-east-1",
    )
    printed = run_all(command, "s3://bucket/train", tmp_path)
    assert_no_secret_in(tmp_path, *printed)
    assert not any(request.holds(AWS_SECRET) for request in server.requests)


@pytest.mark.parametrize("fault", ["none", "refused", "missing", "redirected", "broken"])
def test_no_shared_access_signature_is_written_anywhere(serve, stoker, tmp_path, fault):
    server = serve("azure", sas=SAS)
    spoil(server, fault)
    connection = (
        f"BlobEndpoint={server.url}/{ACCOUNT};SharedAccessSignature=sv=2022-11-02&sp=rl&sig={SAS}"
    )
    command = stoker.with_environment(AZURE_STORAGE_CONNECTION_STRING=connection)
    printed = run_all(command, f"az://{ACCOUNT}/bucket/train", tmp_path)
    assert_no_secret_in(tmp_path, *printed)


@pytest.mark.parametrize("fault", ["none", "refused", "broken"])
def test_no_bearer_token_is_written_anywhere(serve, stoker, tmp_path, identity, fault):
    giver = identity(token=BEARER)
    server = serve("azure")
    server.tokens = {BEARER}
    spoil(server, fault)
    command = stoker.with_environment(
        AZURE_STORAGE_SERVICE_ENDPOINT=f"{server.url}/{ACCOUNT}",
        AZURE_STORAGE_ACCOUNT=ACCOUNT,
        **giver.environment("azure identity"),
    )
    printed = run_all(command, f"az://{ACCOUNT}/bucket/train", tmp_path)
    assert_no_secret_in(tmp_path, *printed)


def test_a_signature_in_a_plain_uri_is_not_written_anywhere(serve, stoker, tmp_path, lake):
    """Presigned addresses carry their secret in the query: it is no part of a name."""
    server = serve()
    source = f"{server.url}/bucket/train/shard-0000.tar?X-Amz-Signature={SAS}&x=1"
    printed = run_all(stoker, source, tmp_path)
    printed = [text.replace(source, "") for text in printed]  # what the user typed, as typed
    assert_no_secret_in(tmp_path, *printed)


def core_pattern():
    return pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()


def test_no_secret_is_in_a_core(serve, stoker, tmp_path):
    """A process that has used keys from a file is ended by a signal that dumps it."""
    if core_pattern().startswith("|") or "/" in core_pattern():
        pytest.skip(f"cores go elsewhere on this machine: {core_pattern()}")
    server = serve("s3")
    server.keys = {"AKIAGREP": AWS_SECRET}
    folder = stoker.home / ".aws"
    folder.mkdir()
    (folder / "given").write_text(
        f"[default]\naws_access_key_id = AKIAGREP\naws_secret_access_key = {AWS_SECRET}\n"
    )
    command = stoker.with_environment(
        AWS_ENDPOINT_URL=server.url,
        AWS_REGION="us-east-1",
        AWS_SHARED_CREDENTIALS_FILE=str(folder / "given"),
        MALLOC_PERTURB_="165",
    )
    command("index", "s3://bucket/train")
    server.forget()
    server.fault("trickle", "*.tar", method="GET", after=2)
    cores = tmp_path / "cores"
    cores.mkdir()
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    run = command.start("stream", "s3://bucket/train", *BATCH, cwd=cores)
    resource.prlimit(run.pid, resource.RLIMIT_CORE, (hard, hard))
    deadline = time.monotonic() + 20
    while len(server.reads(".tar")) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    run.send_signal(signal.SIGABRT)
    run.communicate(timeout=60)
    found = list(cores.iterdir())
    if not found:
        pytest.skip("no core was written")
    assert os.path.getsize(found[0]) > 100_000
    assert AWS_SECRET.encode() not in found[0].read_bytes()
