"""What the tests of stores share: the command in a clean environment, and where one data set lies
on each kind of store."""

import json
import os
import pathlib
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("STOKER_BIN", ROOT / "build" / "stoker")).resolve()
BATCH = ("--batch-size", "8")
ACCOUNT = "devstoreaccount1"
# any base64: the imitation of Azure checks with the same
ACCOUNT_KEY = "c3Rva2VyLXRlc3Qta2V5LW9mLW5vLXdvcnRoLWF0LWFsbC4uLi4="
KEYS = {"AKIATEST": "secret-key-of-the-test"}
FOREIGN = ("AWS_", "AZURE_", "GOOGLE_", "GCE_", "GCS_", "STORAGE_", "IDENTITY_", "MSI_", "STOKER_",
           "CURL_", "SSL_", "REQUESTS_CA", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
           "NO_PROXY")  # fmt: skip


def clean_environment(home):
    """The environment without anything that leads to a cloud, with a home of its own."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(FOREIGN) or name == "STOKER_BIN"
    }
    return {
        **kept,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "LC_ALL": "C.UTF-8",
        "AWS_EC2_METADATA_DISABLED": "true",
        # whoever looks at metadata all the same finds a closed port, soon
        "AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://127.0.0.1:1",
        "GCE_METADATA_HOST": "127.0.0.1:1",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1",
    }


class Command:
    """Runs `stoker` with more environment, and reads what it prints."""

    def __init__(self, home, environment=None):
        self.home = home
        self.environment = {**clean_environment(home), **(environment or {})}

    def with_environment(self, **more):
        """The same with more variables; None takes one away."""
        other = Command(self.home)
        merged = {**self.environment, **more}
        other.environment = {name: value for name, value in merged.items() if value is not None}
        return other

    def __call__(self, *arguments, status=0, limit=90, **options):
        done = subprocess.run(
            [str(BINARY), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=limit,
            env=self.environment,
            **options,
        )
        told = f"{arguments}: {done.returncode} {done.stdout!r} {done.stderr!r}"
        assert "Sanitizer" not in done.stderr and done.returncode >= 0, told
        if status is not None:
            assert done.returncode == status, told
        return done

    def json(self, *arguments, **options):
        return json.loads(self(*arguments, "--json", **options).stdout)

    def stream(self, source, *arguments, **options):
        """What `stoker stream --json` tells."""
        return self.json("stream", source, *BATCH, *arguments, **options)

    def digest(self, source, *arguments, **options):
        return self.stream(source, *arguments, **options)["digest"]

    def fails(self, source, *arguments, status=1, **options):
        """Streams, which must end with one line of words; returns them."""
        done = self("stream", source, *BATCH, *arguments, status=status, **options)
        assert done.returncode in (1, 2), done.stdout
        assert done.stderr.startswith("stoker: "), done.stderr
        return done.stderr

    def start(self, *arguments, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(
            [str(BINARY), *map(str, arguments)],
            env=self.environment,
            text=True,
            # a shell's background job ignores Ctrl-C, and so would all that is started from it
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            **options,
        )


# kind of source -> kind of server
SERVER_OF = {
    "http": "http",
    "s3": "s3",
    "az": "azure",
    "abfss": "azure",
    "gs": "gs",
}


def source_of(kind, server):
    """The data set's URI on a server of ours: in bucket (or container) "bucket", under "train"."""
    return {
        "http": f"{server.url}/bucket/train/shard-{{0000..0002}}.tar",
        "s3": "s3://bucket/train",
        "az": f"az://{ACCOUNT}/bucket/train",
        "abfss": f"abfss://bucket@{ACCOUNT}.dfs.core.windows.net/train",
        "gs": "gs://bucket/train",
    }[kind]


def environment_of(kind, server):
    """What leads a client to the server, with credentials that it takes."""
    connection = (
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};"
        f"BlobEndpoint={server.url}/{ACCOUNT};"
    )
    (name, secret), *_ = KEYS.items()
    return {
        "http": {},
        "s3": {
            "AWS_ENDPOINT_URL": server.url,
            "AWS_ACCESS_KEY_ID": name,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": "us-east-1",
        },
        "azure": {"AZURE_STORAGE_CONNECTION_STRING": connection},
        "gs": {"STORAGE_EMULATOR_HOST": server.url, "STOKER_GS_ANONYMOUS": "1"},
    }[SERVER_OF[kind]]
