"""`stoker check URI`: what it says of places that are empty, of patterns, and of secrets."""

import json

import pytest
from store_runs import ACCOUNT, BATCH


def rows_of(done):
    (probe,) = json.loads(done.stdout)["probes"]
    return probe, {row["step"]: row for row in probe["rows"]}


def test_a_folder_that_is_empty_is_a_step_that_fails(place):
    _server, stoker, source = place("s3")
    done = stoker("check", f"{source}-of-nobody/", "--json", status=1)
    probe, rows = rows_of(done)
    assert rows["list"]["state"] == "bad" and "nothing lies under" in rows["list"]["value"]
    assert not probe["works"]


@pytest.mark.parametrize("kind", ["s3", "http"])
def test_a_brace_list_is_looked_at_by_its_first_name(place, kind):
    _server, stoker, source = place(kind)
    names = source if kind == "http" else f"{source}/shard-{{0001..0002}}.tar"
    _probe, rows = rows_of(stoker("check", names, "--json"))
    assert rows["range"]["state"] == "good" and "latency" in rows


def test_a_pattern_is_looked_at_by_what_stands_before_it(place):
    _server, stoker, source = place("az")
    _probe, rows = rows_of(stoker("check", f"{source}/shard-*.tar", "--json"))
    assert rows["list"]["value"].startswith("3 names") and "latency" in rows


def test_the_kind_of_connection_is_told_without_credentials(stoker):
    command = stoker.with_environment(
        AWS_ENDPOINT_URL="https://127.0.0.1:1", AWS_EC2_METADATA_DISABLED="true"
    )
    done = command("check", "s3://bucket/x", "--json", status=1)
    _probe, rows = rows_of(done)
    assert list(rows) == ["resolve", "connect"]  # at once: nobody was asked for credentials


SECRET = "XyZZy-of-the-test"


@pytest.mark.parametrize(
    "uri",
    [
        f"s3://AKIA:{SECRET}@bucket/x",
        f"gs://user:{SECRET}@bucket/x",
        f"s3://bucket/x?X-Amz-Signature={SECRET}",
        f"az://{ACCOUNT}/c/x?sv=1&sig={SECRET}",
        f"abfss://c@{ACCOUNT}.dfs.core.windows.net/x?sig={SECRET}",
        f"http://user:{SECRET}@127.0.0.1:1/x",
        f"http://127.0.0.1:1/x?token={SECRET}",
    ],
)
def test_a_secret_in_a_uri_is_refused_and_never_shown(stoker, lake, uri):
    for words in (("check", uri), ("ls", uri), ("stream", uri, *BATCH)):
        done = stoker(*words, status=2)
        assert SECRET not in done.stdout + done.stderr
        assert "refused" in done.stderr
    done = stoker("pack", lake / "bucket" / "train", "-o", uri, "--to", "tar", status=None)
    assert done.returncode and SECRET not in done.stdout + done.stderr


def test_a_password_of_the_proxy_is_never_shown(stoker):
    proxy = f"http://user:{SECRET}@127.0.0.1:1"
    command = stoker.with_environment(http_proxy=proxy, https_proxy=proxy)
    for words in (("check", "https://host.test/x"), ("ls", "http://host.test/x")):
        done = command(*words, "--timeout", 1, status=1)
        assert SECRET not in done.stdout + done.stderr
