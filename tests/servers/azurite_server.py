"""Azurite: Azure's own emulator of Blob Storage (npm). tools/setup.sh puts it into .venv-azurite;
STOKER_AZURITE names another folder. It checks signatures and has no hierarchical namespace."""

import os
import pathlib
import shutil

from servers.processes import NotAvailable, Program

ROOT = pathlib.Path(__file__).resolve().parents[2]
ACCOUNT = "devstoreaccount1"
# the key of the emulator's account that its documentation prints: everybody's
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class Azurite:
    def __init__(self, folder):
        node = shutil.which("node")
        home = pathlib.Path(os.environ.get("STOKER_AZURITE", ROOT / ".venv-azurite"))
        script = home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
        if node is None:
            raise NotAvailable("node is not installed")
        if not script.exists():
            raise NotAvailable(f"Azurite is not installed ({home} has no azurite: make setup)")
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._program = Program(
            lambda port: [
                *(node, script, "--blobHost", "127.0.0.1", "--blobPort", port),
                *("--location", folder, "--silent", "--skipApiVersionCheck"),
                "--disableTelemetry",
            ],
            folder / "azurite.log",
        )
        self.url = f"http://127.0.0.1:{self._program.port}/{ACCOUNT}"

    @property
    def connection_string(self):
        return (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
            f"BlobEndpoint={self.url};"
        )

    def client(self):
        from azure.storage.blob import BlobServiceClient

        return BlobServiceClient.from_connection_string(self.connection_string)

    def fill(self, container, folder):
        """Puts the files of a folder into a container."""
        service = self.client()
        service.create_container(container)
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file():
                blob = service.get_blob_client(container, path.relative_to(folder).as_posix())
                blob.upload_blob(path.read_bytes())

    def environment(self):
        return {"AZURE_STORAGE_CONNECTION_STRING": self.connection_string}

    def stop(self):
        self._program.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
