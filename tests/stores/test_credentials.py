"""Credentials are found in each place where the cloud's own tools look, in their order, renewed
before they end, and once for all threads."""

import json
import stat

import pytest
from store_runs import ACCOUNT, ACCOUNT_KEY, KEYS

(NAME, SECRET), *_ = KEYS.items()
NO_KEYS = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}


@pytest.fixture
def s3(place):
    """(server, command without credentials, source); its home has a folder .aws."""
    server, stoker, source = place("s3")
    (stoker.home / ".aws").mkdir()
    return server, stoker.with_environment(**NO_KEYS), source


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def key_lines(name=NAME, secret=SECRET):
    return f"aws_access_key_id = {name}\naws_secret_access_key = {secret}\n"


def signed_by(server):
    """The access keys that requests came with."""
    words = [request.header("Authorization", "") for request in server.requests]
    return {word.partition("Credential=")[2].partition("/")[0] for word in words}


# --- AWS ---


def test_aws_nothing_found_is_told_with_the_places(s3):
    _server, stoker, source = s3
    words = stoker.fails(source, "--timeout", 8)
    assert "credentials" in words and "AWS_ACCESS_KEY_ID" in words


def test_aws_shared_credentials_file(s3, expected):
    _server, stoker, source = s3
    write(stoker.home / ".aws" / "credentials", "[default]\n" + key_lines())
    assert stoker.digest(source) == expected


def test_aws_profile_of_the_config_file(s3, expected):
    server, stoker, source = s3
    write(stoker.home / ".aws" / "config", "[profile work]\nregion = eu-west-1\n" + key_lines())
    command = stoker.with_environment(AWS_PROFILE="work", AWS_REGION=None)
    assert command.digest(source) == expected
    scopes = {r.header("Authorization").split("/")[2] for r in server.requests}
    assert scopes == {"eu-west-1"}


def test_aws_files_can_lie_elsewhere(s3, expected, tmp_path):
    _server, stoker, source = s3
    path = write(tmp_path / "elsewhere", "[other]\n" + key_lines())
    command = stoker.with_environment(AWS_SHARED_CREDENTIALS_FILE=str(path), AWS_PROFILE="other")
    assert command.digest(source) == expected


def test_aws_a_profile_that_is_not_there_is_told(s3):
    _server, stoker, source = s3
    write(stoker.home / ".aws" / "credentials", "[default]\n" + key_lines())
    words = stoker.with_environment(AWS_PROFILE="nobody").fails(source, status=None)
    assert "nobody" in words


def test_aws_the_environment_comes_before_files(s3, expected):
    server, stoker, source = s3
    write(stoker.home / ".aws" / "credentials", "[default]\n" + key_lines("AKIAOTHER", "other"))
    command = stoker.with_environment(AWS_ACCESS_KEY_ID=NAME, AWS_SECRET_ACCESS_KEY=SECRET)
    assert command.digest(source) == expected
    assert signed_by(server) == {NAME}


def test_aws_credential_process(s3, expected, tmp_path):
    _server, stoker, source = s3
    told = {"Version": 1, "AccessKeyId": NAME, "SecretAccessKey": SECRET}
    program = write(tmp_path / "give keys", f"#!/bin/sh\necho '{json.dumps(told)}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    write(stoker.home / ".aws" / "config", f'[default]\ncredential_process = "{program}" a b\n')
    assert stoker.digest(source) == expected


def test_aws_a_credential_process_that_fails_is_told(s3):
    _server, stoker, source = s3
    write(stoker.home / ".aws" / "config", "[default]\ncredential_process = /bin/false\n")
    words = stoker.fails(source, "--timeout", 8)
    assert "credential_process" in words


@pytest.mark.parametrize("kind", ["imds", "container", "web identity"])
def test_aws_endpoints_hand_out_keys(s3, expected, identity, tmp_path, kind):
    server, stoker, source = s3
    giver = identity()
    server.keys = {giver.keys[0]: giver.keys[1]}
    server.sessions = {giver.keys[2]}
    command = stoker.with_environment(**giver.environment(kind, tmp_path))
    assert command.digest(source, "--threads", 4) == expected
    assert len(giver.given) == 1


def test_aws_a_role_is_assumed_from_a_profile(s3, expected, identity):
    server, stoker, source = s3
    giver = identity()
    server.keys = {giver.keys[0]: giver.keys[1]}
    server.sessions = {giver.keys[2]}
    write(
        stoker.home / ".aws" / "config",
        "[profile base]\n" + key_lines("AKIABASE", "base-secret")
        + "[profile role]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = base\n",
    )  # fmt: skip
    command = stoker.with_environment(AWS_PROFILE="role", AWS_ENDPOINT_URL_STS=giver.url)
    assert command.digest(source) == expected
    assert [kind for kind, _ in giver.given] == ["AssumeRole"]


def test_aws_metadata_is_not_asked_where_something_else_was_found(s3, expected, identity):
    _server, stoker, source = s3
    giver = identity()
    write(stoker.home / ".aws" / "credentials", "[default]\n" + key_lines())
    assert stoker.with_environment(**giver.environment("imds")).digest(source) == expected
    assert giver.requests == []


def test_aws_metadata_that_is_disabled_is_not_asked(s3, identity):
    _server, stoker, source = s3
    giver = identity()
    variables = {**giver.environment("imds"), "AWS_EC2_METADATA_DISABLED": "true"}
    stoker.with_environment(**variables).fails(source, "--timeout", 8)
    assert giver.requests == []


def test_aws_metadata_uses_the_second_version(s3, expected, identity):
    server, stoker, source = s3
    giver = identity()
    server.keys = {giver.keys[0]: giver.keys[1]}
    assert stoker.with_environment(**giver.environment("imds")).digest(source) == expected
    first = giver.requests[0]
    assert (first.method, first.path) == ("PUT", "/latest/api/token")


def test_aws_keys_are_renewed_before_they_end(s3, identity):
    """They last 2 s longer than the margin in which they are renewed: a run needs new ones."""
    server, stoker, source = s3
    giver = identity(new_each=True, lasts=302)
    server.keys = {giver.keys[0]: giver.keys[1]}
    server.fault("delay", "*.tar", seconds=0.05)
    command = stoker.with_environment(**giver.environment("container"))
    command.digest(source, "--epochs", 40)
    assert 1 <= len(giver.given) < 12
    assert all(request.status != 403 for request in server.requests)


def test_aws_keys_that_have_ended_already_are_not_used_for_ever(s3, identity):
    server, stoker, source = s3
    giver = identity(lasts=-100)
    server.keys = {giver.keys[0]: giver.keys[1]}
    done = stoker.with_environment(**giver.environment("container"))(
        *("stream", source, "--batch-size", 8, "--timeout", 5), status=None
    )
    assert done.returncode in (0, 1) and len(giver.given) < 200


# --- Azure ---


@pytest.fixture
def azure(place):
    """(server, command without credentials, source); the endpoint is set without a key."""
    server, stoker, source = place("az")
    endpoint = f"{server.url}/{ACCOUNT}"
    command = stoker.with_environment(
        AZURE_STORAGE_CONNECTION_STRING=None,
        AZURE_STORAGE_SERVICE_ENDPOINT=endpoint,
        AZURE_STORAGE_ACCOUNT=ACCOUNT,
    )
    return server, command, source


def test_azure_account_and_key_of_the_environment(azure, expected):
    _server, stoker, source = azure
    assert stoker.with_environment(AZURE_STORAGE_KEY=ACCOUNT_KEY).digest(source) == expected


def test_azure_a_shared_access_signature_of_the_environment(azure, serve, expected):
    server, stoker, source = azure
    server.keys, server.options["sas"] = {}, "sig/of+the=test"
    token = "sv=2022-11-02&sp=rl&sig=sig%2Fof%2Bthe%3Dtest"
    assert stoker.with_environment(AZURE_STORAGE_SAS_TOKEN=token).digest(source) == expected
    assert stoker.with_environment(AZURE_STORAGE_SAS_TOKEN="?" + token).digest(source) == expected


@pytest.mark.parametrize("kind", ["azure identity", "azure imds", "azure workload", "azure secret"])
def test_azure_endpoints_hand_out_tokens(azure, expected, identity, tmp_path, kind):
    server, stoker, source = azure
    giver = identity()
    server.keys, server.tokens = {}, {giver.token}
    command = stoker.with_environment(**giver.environment(kind, tmp_path))
    assert command.digest(source, "--threads", 4) == expected
    assert len(giver.given) == 1
    assert all(request.header("x-ms-version") for request in server.requests)


def test_azure_a_refused_token_is_renewed(azure, identity):
    server, stoker, source = azure
    giver = identity(new_each=True)
    server.keys, server.tokens = {}, {f"{giver.token}-1"}

    def expire(request):
        server.tokens = {f"{giver.token}-2", f"{giver.token}-3"}

    server.fault("call", "*.tar", method="GET", after=3, times=1, call=expire)
    stoker.with_environment(**giver.environment("azure identity")).digest(source, "--epochs", 2)
    assert len(giver.given) == 2


# --- Google ---


def test_google_metadata_hands_out_tokens(place, expected, identity):
    server, stoker, source = place("gs")
    giver = identity()
    server.tokens = {giver.token}
    command = stoker.with_environment(STOKER_GS_ANONYMOUS=None, **giver.environment("gce"))
    assert command.digest(source, "--threads", 4) == expected
    assert len(giver.given) == 1


def test_google_a_refresh_token_is_exchanged(place, expected, identity, tmp_path):
    server, stoker, source = place("gs")
    giver = identity()
    server.tokens = {giver.token}
    told = {
        "type": "authorized_user",
        "client_id": "client-of-the-test",
        "client_secret": "client-password",
        "refresh_token": "refresh-password",
        "token_uri": f"{giver.url}/token",
    }
    path = write(tmp_path / "adc.json", json.dumps(told))
    command = stoker.with_environment(
        STOKER_GS_ANONYMOUS=None, GOOGLE_APPLICATION_CREDENTIALS=str(path)
    )
    assert command.digest(source) == expected


# --- plain HTTP ---


def test_http_a_password_of_netrc_is_used(serve, stoker, expected):
    server = serve(password="reader:netrc-password")
    netrc = write(
        stoker.home / ".netrc", "machine 127.0.0.1 login reader password netrc-password\n"
    )
    netrc.chmod(0o600)
    source = f"{server.url}/bucket/train/shard-{{0000..0002}}.tar"
    assert stoker.digest(source) == expected


def test_nginx_behind_a_password_is_read(nginx, stoker, expected):
    from servers.nginx_server import PASSWORD, USER

    source = f"{nginx.private_url}/bucket/train/shard-{{0000..0002}}.tar"
    words = stoker.fails(source, "--timeout", 5)
    assert "401" in words or "credentials" in words or "denied" in words.lower()
    netrc = write(stoker.home / ".netrc", f"machine 127.0.0.1 login {USER} password {PASSWORD}\n")
    netrc.chmod(0o600)
    assert stoker.digest(source) == expected
