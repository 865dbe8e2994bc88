"""moto's server: S3 as its own project imitates it. It does not check signatures."""

import importlib.util
import pathlib
import sys

from servers.processes import NotAvailable, Program


class Moto:
    def __init__(self, folder):
        for module in ("moto", "flask", "boto3"):
            if importlib.util.find_spec(module) is None:
                raise NotAvailable(f"the Python package {module} is not installed")
        log = pathlib.Path(folder) / "moto.log"
        script = "import sys; from moto.server import main; main(sys.argv[1:])"
        self._program = Program(
            lambda port: [sys.executable, "-c", script, "-H", "127.0.0.1", "-p", port], log
        )
        self.url = f"http://127.0.0.1:{self._program.port}"

    def client(self):
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="AKIATEST",
            aws_secret_access_key="secret-of-moto",
        )

    def fill(self, bucket, folder):
        """Puts the files of a folder into a bucket."""
        client = self.client()
        client.create_bucket(Bucket=bucket)
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file():
                key = path.relative_to(folder).as_posix()
                client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())

    def environment(self):
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "AKIATEST",
            "AWS_SECRET_ACCESS_KEY": "secret-of-moto",
            "AWS_REGION": "us-east-1",
        }

    def stop(self):
        self._program.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
