"""Faults 59 to 73 of the network: what is passing is passed over, the rest is an error that names
the object; nothing wrong is ever delivered, and no secret is told to a stranger."""

import time

import numpy
import pytest
from store_runs import ACCOUNT, ACCOUNT_KEY, KEYS

TAR = "*.tar"
SHORT = ("--timeout", "2")
ON = pytest.mark.parametrize("kind", ["http", "s3", "az"])
(SECRET,) = KEYS.values()


def span(request):
    """(first, end) of the range that a request asked for."""
    words = request.header("x-ms-range") or request.header("Range") or "bytes=0-"
    first, _, last = words.removeprefix("bytes=").partition("-")
    return int(first), int(last) + 1 if last else None


# --- 59, 60: bodies that end too soon or too late ---


@ON
@pytest.mark.parametrize("reset", [True, False], ids=["reset", "closed"])
def test_fault_59_a_connection_that_breaks_in_the_body_is_resumed(place, expected, kind, reset):
    server, stoker, source = place(kind)
    fault = server.fault("cut", TAR, method="GET", at=0.5, reset=reset, times=4)
    assert stoker.digest(source) == expected
    assert fault.count == 4


def test_fault_59_what_has_come_is_not_asked_for_again(place, expected):
    server, stoker, source = place()
    stoker("index", source)
    server.forget()
    server.fault("cut", TAR, method="GET", at=0.5, times=1)
    assert stoker.digest(source) == expected
    (broken,) = [request for request in server.requests if "cut" in request.faults]
    first, _ = span(broken)
    assert broken.sent > 0
    asked = [span(request)[0] for request in server.reads() if request.path == broken.path]
    assert first + broken.sent in asked


@pytest.mark.parametrize("fault", ["longer", "shorter", "surplus", "lacking"])
def test_fault_60_a_length_that_is_wrong_is_tried_again(place, expected, fault):
    server, stoker, source = place()
    wrong = server.fault(fault, TAR, method="GET", times=2)
    assert stoker.digest(source) == expected
    assert wrong.count == 2


@pytest.mark.parametrize("fault", ["longer", "surplus", "lacking"])
def test_fault_60_a_length_that_stays_wrong_is_an_error(place, fault):
    server, stoker, source = place()
    server.fault(fault, TAR, method="GET")
    begun = time.monotonic()
    words = stoker.fails(source, *SHORT)
    assert server.url in words and time.monotonic() - begun < 20


# --- 61, 62: answers that are not what was asked for ---


def test_fault_61_the_whole_instead_of_a_range_is_never_taken_for_the_range(place, expected):
    server, stoker, source = place()
    stoker("index", source)
    server.fault("whole", TAR, times=3)
    done = stoker("stream", source, "--batch-size", 8, "--json", *SHORT, status=None)
    if done.returncode == 0:
        assert expected in done.stdout
    else:
        assert server.url in done.stderr


def test_fault_61_a_server_without_ranges_is_told_or_read_whole(place, expected):
    server, stoker, source = place()
    server.fault("whole", TAR)
    done = stoker("stream", source, "--batch-size", 8, "--json", *SHORT, status=None)
    if done.returncode == 0:
        assert expected in done.stdout
    else:
        assert server.url in done.stderr and "range" in done.stderr.lower()


@ON
@pytest.mark.parametrize("fault", ["wrong range", "no range"])
def test_fault_62_another_range_than_was_asked_for_is_an_error(place, kind, fault):
    server, stoker, source = place(kind)
    stoker("index", source)
    server.fault(fault, TAR)
    assert "shard-" in stoker.fails(source, *SHORT)


# --- 63: objects that change ---


@ON
def test_fault_63_an_object_that_changes_under_a_run_is_an_error(place, kind):
    server, stoker, source = place(kind)
    stoker("index", source)
    server.forget()
    server.fault("change", "*shard-0001.tar", method="GET", after=1, times=1)
    words = stoker.fails(source, "--epochs", 3, *SHORT)
    assert "shard-0001.tar" in words and "changed" in words


def test_fault_63_a_change_is_seen_where_the_server_ignores_if_match(place):
    server, stoker, source = place()
    stoker("index", source)
    server.fault("no if-match", TAR)
    server.fault("other etag", "*shard-0001.tar", method="GET", after=1)
    words = stoker.fails(source, "--epochs", 3, *SHORT)
    assert "shard-0001.tar" in words and "changed" in words


@ON
def test_fault_63_every_range_says_which_version_it_is_of(place, expected, kind):
    server, stoker, source = place(kind)
    stoker("index", source)
    server.forget()
    assert stoker.digest(source) == expected
    reads = server.reads(".tar")
    assert reads and all(request.header("If-Match") for request in reads)


@ON
def test_fault_63_an_object_that_changed_between_runs_is_indexed_anew(place, expected, kind):
    server, stoker, source = place(kind)
    assert stoker.digest(source) == expected
    for number in range(3):
        server.objects.change(f"bucket/train/shard-{number:04d}.tar")
    assert stoker.digest(source) == expected


# --- 64, 65: servers that are busy or broken for a while ---


@ON
@pytest.mark.parametrize("status", [429, 503])
def test_fault_64_a_throttle_is_waited_for_as_long_as_it_says(place, expected, kind, status):
    server, stoker, source = place(kind)
    stoker("index", source)
    server.forget()
    fault = server.fault("status", TAR, method="GET", status=status, retry_after=2, times=1)
    told = stoker.stream(source)
    assert told["digest"] == expected and told["seconds"] >= 1.9
    assert fault.count == 1


@ON
def test_fault_64_a_throttle_without_a_time_backs_off(place, expected, kind):
    server, stoker, source = place(kind)
    server.fault("status", TAR, status=503, code="SlowDown", chance=0.2, times=6)
    assert stoker.digest(source) == expected


def test_fault_64_a_throttle_that_stays_is_no_storm(place):
    server, stoker, source = place("s3")
    stoker("index", source)
    server.forget()
    server.fault("status", TAR, method="GET", status=503, code="SlowDown")
    begun = time.monotonic()
    words = stoker.fails(source, *SHORT)
    assert time.monotonic() - begun < 20
    assert "503" in words or "SlowDown" in words or "slow down" in words.lower()
    assert len(server.reads(".tar")) < 150


@ON
@pytest.mark.parametrize("status", [500, 502, 504])
def test_fault_65_a_passing_error_of_the_server_is_not_seen(place, expected, kind, status):
    server, stoker, source = place(kind)
    fault = server.fault("status", TAR, status=status, times=4)
    assert stoker.digest(source) == expected
    assert fault.count == 4


def test_fault_65_an_error_that_stays_is_told_with_its_status(place):
    server, stoker, source = place()
    server.fault("status", TAR, status=500)
    assert "500" in stoker.fails(source, *SHORT)


# --- 66, 67: refused, gone ---


def test_fault_66_an_expired_token_is_renewed_once_for_all(place, expected, identity):
    """The server takes the first session's token for a while, then only the second one's."""
    server, stoker, source = place("s3")
    giver = identity(new_each=True, lasts=36000)
    server.keys = {giver.keys[0]: giver.keys[1]}
    session = giver.keys[2]
    server.sessions = {f"{session}-1"}

    def expire(request):
        server.sessions = {f"{session}-2", f"{session}-3"}

    stoker = stoker.with_environment(
        AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None, **giver.environment("container")
    )
    server.fault("call", TAR, method="GET", after=3, times=1, call=expire)
    assert stoker.digest(source, "--epochs", 2) is not None
    assert len(giver.given) == 2
    assert any(request.status == 403 for request in server.requests)


def test_fault_66_a_token_that_stays_refused_is_told_as_that(place):
    server, stoker, source = place("s3")
    server.sessions = {"another"}
    stoker = stoker.with_environment(AWS_SESSION_TOKEN="expired-session-token")
    words = stoker.fails(source, *SHORT)
    assert "credentials" in words and "environment" in words
    assert SECRET not in words and "expired-session-token" not in words


def test_fault_66_an_azure_key_that_is_wrong_is_told_without_it(place):
    server, stoker, source = place("az")
    server.keys = {ACCOUNT: "b3RoZXI="}
    words = stoker.fails(source, *SHORT)
    assert ACCOUNT_KEY not in words
    assert "credentials" in words or "refused" in words


@ON
def test_fault_67_an_object_that_goes_in_the_middle_is_an_error_at_once(place, kind):
    server, stoker, source = place(kind)
    stoker("index", source)
    server.forget()
    server.fault("status", "*shard-0002.tar", method="GET", status=404,
                 code="NoSuchKey" if kind == "s3" else "BlobNotFound")  # fmt: skip
    begun = time.monotonic()
    words = stoker.fails(source, "--timeout", "30")
    assert "shard-0002.tar" in words and time.monotonic() - begun < 15
    refused = [span(request)[0] for request in server.reads("shard-0002.tar")]
    assert all(refused.count(first) < 15 for first in refused)  # read ahead, and none twice


# --- 68: redirects ---


def test_fault_68_another_region_is_signed_for_anew(place, expected):
    _server, stoker, source = place("s3", region="eu-west-1")
    assert stoker.digest(source) == expected


def test_fault_68_a_redirect_to_another_region_is_followed(place, expected):
    server, stoker, source = place("s3")
    server.fault("status", TAR, status=301, code="PermanentRedirect", times=2,
                 headers={"x-amz-bucket-region": "us-west-2"})  # fmt: skip
    assert stoker.digest(source) == expected


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_fault_68_a_redirect_to_another_host_is_followed_without_credentials(
    place, serve, expected, status
):
    server, stoker, source = place("s3")
    other = serve("s3")
    server.fault("redirect", TAR, to=f"{other.url}/*", status=status)
    done = stoker("stream", source, "--batch-size", 8, "--json", *SHORT, status=None)
    if done.returncode == 0:
        assert expected in done.stdout
        assert other.requests
    for request in other.requests:
        assert request.header("Authorization") is None
        assert not any(name.lower().startswith("x-amz-") for name, _ in request.headers)
        assert not request.holds(SECRET) and not request.holds("AKIATEST")


def test_fault_68_a_plain_redirect_is_followed(place, serve, expected):
    server, stoker, source = place()
    other = serve()
    server.fault("redirect", TAR, to=f"{other.url}/*")
    assert stoker.digest(source) == expected


@pytest.mark.parametrize("status", [302, 307])
def test_fault_68_a_shared_access_signature_is_not_carried_along(stoker, serve, lake, status):
    server = serve("azure", sas="signature-of-the-test")
    other = serve("azure")
    connection = (
        f"BlobEndpoint={server.url}/{ACCOUNT};"
        "SharedAccessSignature=sv=2022-11-02&sp=rl&sig=signature-of-the-test"
    )
    server.fault("redirect", TAR, to=f"{other.url}/{ACCOUNT}/bucket/train/shard-0000.tar",
                 status=status)  # fmt: skip
    command = stoker.with_environment(AZURE_STORAGE_CONNECTION_STRING=connection)
    done = command(
        *("stream", f"az://{ACCOUNT}/bucket/train", "--batch-size", 8, *SHORT), status=None
    )
    assert "signature-of-the-test" not in done.stderr + done.stdout
    assert not any(request.holds("signature-of-the-test") for request in other.requests)


def test_fault_68_a_redirect_loop_ends(place):
    server, stoker, source = place()
    server.fault("redirect", TAR, to=f"{server.url}/*")
    begun = time.monotonic()
    assert "redirect" in stoker.fails(source, *SHORT)
    assert time.monotonic() - begun < 20 and len(server.requests) < 400


def test_fault_68_a_redirect_from_https_to_http_is_refused(serve, certificates, stoker):
    plain = serve()
    server = serve(tls=certificates.pair("good"))
    server.fault("redirect", TAR, to=f"{plain.url}/*")
    source = f"{server.url}/bucket/train/shard-{{0000..0002}}.tar"
    assert "redirect" in stoker.fails(source, "--ca", certificates.ca, *SHORT)
    assert plain.requests == []


# --- 69, 70: slow, unreachable, untrusted ---


def test_fault_69_a_slow_answer_is_asked_for_again(place, expected):
    server, stoker, source = place()
    stoker("index", source)
    server.forget()
    fault = server.fault("trickle", TAR, method="GET", after=1, times=1)
    begun = time.monotonic()
    assert stoker.digest(source, "--epochs", 2) is not None
    assert fault.count == 1 and time.monotonic() - begun < 45


def test_fault_69_a_server_that_is_only_slow_ends_in_its_time(place):
    server, stoker, source = place()
    server.fault("trickle", TAR, method="GET")
    begun = time.monotonic()
    words = stoker.fails(source, "--timeout", "4")
    assert server.url in words and time.monotonic() - begun < 20


def test_fault_70_a_host_that_has_no_address_is_told(stoker):
    begun = time.monotonic()
    words = stoker.fails("http://no-such-host.invalid/a.tar", *SHORT)
    assert "no-such-host.invalid" in words and time.monotonic() - begun < 25


def test_fault_70_a_port_that_is_closed_is_told(stoker):
    begun = time.monotonic()
    words = stoker.fails("http://127.0.0.1:1/a.tar", *SHORT)
    assert "127.0.0.1:1" in words and time.monotonic() - begun < 20


def test_fault_70_an_address_that_swallows_all_ends_in_its_time(stoker):
    begun = time.monotonic()
    words = stoker.fails("http://[100::1]/a.tar", "--timeout", "3")  # RFC 6666: discard
    assert "100::1" in words and time.monotonic() - begun < 20


@pytest.mark.parametrize("kind", ["expired", "other name"])
def test_fault_70_a_certificate_that_is_not_right_is_refused(serve, certificates, stoker, kind):
    server = serve(tls=certificates.pair(kind))
    begun = time.monotonic()
    words = stoker.fails(
        f"{server.url}/bucket/train/shard-0000.tar", "--ca", certificates.ca, *SHORT
    )
    assert "certificate" in words.lower() and time.monotonic() - begun < 20
    assert server.requests == []


def test_fault_70_a_certificate_of_a_stranger_is_refused(serve, certificates, stoker):
    server = serve(tls=certificates.pair("good"))
    words = stoker.fails(f"{server.url}/bucket/train/shard-0000.tar", *SHORT)
    assert "certificate" in words.lower() and server.requests == []


def test_a_certificate_of_our_own_authority_is_taken(serve, certificates, stoker, expected):
    server = serve(tls=certificates.pair("good"))
    source = f"{server.url}/bucket/train/shard-{{0000..0002}}.tar"
    assert stoker.digest(source, "--ca", certificates.ca) == expected
    command = stoker.with_environment(STOKER_CA=str(certificates.ca))
    assert command.digest(source) == expected


# --- 71, 72, 73: bodies that are something else ---


@pytest.mark.parametrize("kind", ["s3", "az"])
def test_fault_71_an_error_in_a_good_answer_to_a_list_is_an_error(place, kind):
    server, stoker, source = place(kind)
    server.fault("error in 200", query="list")
    words = stoker.fails(source, *SHORT)
    assert "bucket" in words


@ON
def test_fault_71_an_error_in_a_good_answer_to_a_read_is_an_error(place, kind):
    server, stoker, source = place(kind)
    stoker("index", source)
    server.fault("error in 200", TAR, method="GET")
    assert "shard-" in stoker.fails(source, *SHORT)


@ON
def test_fault_72_a_body_that_a_proxy_packed_is_not_taken(place, expected, kind):
    server, stoker, source = place(kind)
    stoker("index", source)
    server.fault("encoded", TAR, method="GET")
    words = stoker.fails(source, *SHORT)
    assert "shard-" in words and "ncod" in words


def test_fault_72_packed_now_and_then_is_passed_over(place, expected):
    server, stoker, source = place()
    stoker("index", source)
    server.fault("encoded", TAR, method="GET", times=2)
    done = stoker("stream", source, "--batch-size", 8, "--json", *SHORT, status=None)
    assert done.returncode == 1 or expected in done.stdout


def test_nothing_packed_is_asked_for(place, expected):
    server, stoker, source = place()
    assert stoker.digest(source) == expected
    for request in server.requests:
        assert (request.header("Accept-Encoding") or "identity") == "identity"


def test_fault_73_a_flipped_bit_is_caught_by_the_checksum(serve, stoker, tmp_path):
    values = numpy.random.default_rng(0).random((400, 400), numpy.float32)
    numpy.savez_compressed(tmp_path / "a.npz", x=values)
    server = serve(root=tmp_path)
    source = f"{server.url}/a.npz"
    assert stoker.stream(source)["samples"] == 400
    server.fault("flip", "*.npz", method="GET")
    words = stoker.fails(source, "--cache", tmp_path / "none", *SHORT)
    assert "checksum" in words and "a.npz" in words


def test_fault_73_a_flipped_bit_in_a_header_is_caught(serve, stoker, lake):
    server = serve()
    server.fault("flip", TAR, method="GET", at=100)
    stoker.fails(f"{server.url}/bucket/train/shard-0000.tar", *SHORT)


def test_proxy_variables_are_respected(place, serve, stoker, expected):
    """The proxy is a server of the same files: it is asked for absolute addresses."""
    proxy = serve()
    proxy.fault("call", "http://*", call=lambda request: setattr(
        request, "target", "/" + request.target.split("/", 3)[3]))  # fmt: skip
    command = stoker.with_environment(http_proxy=proxy.url)
    source = "http://data.example/bucket/train/shard-{0000..0002}.tar"
    assert command.digest(source) == expected
    assert proxy.requests
