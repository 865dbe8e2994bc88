"""Certificates for tests of TLS, made by the openssl command: an authority of our own, and servers'
certificates of it that are good, expired, or of another name."""

import pathlib
import shutil
import subprocess

from servers.processes import NotAvailable

CONFIG = """
[ca]
default_ca = one
[one]
new_certs_dir = {folder}
database = {folder}/index.txt
serial = {folder}/serial
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[here]
basicConstraints = CA:false
subjectAltName = DNS:localhost, IP:127.0.0.1
[elsewhere]
basicConstraints = CA:false
subjectAltName = DNS:elsewhere.example
"""


class Certificates:
    """ca: the authority's file. pair(kind) of "good", "expired", "other name": the files of a
    certificate and its key."""

    def __init__(self, folder):
        if shutil.which("openssl") is None:
            raise NotAvailable("there is no openssl command")
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config = self.folder / "openssl.cnf"
        self.config.write_text(CONFIG.format(folder=self.folder))
        (self.folder / "index.txt").write_text("")
        (self.folder / "serial").write_text("01\n")
        self.ca = self.folder / "ca.pem"
        self._run(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-nodes", "-keyout", self.folder / "ca.key", "-out", self.ca, "-days", "30"),
            *("-subj", "/CN=authority of a test", "-extensions", "authority"),
            *("-config", self.config),
        )
        self._make("good", "localhost", "here", ("-days", "30"))
        past = ("-startdate", "20200101000000Z", "-enddate", "20200201000000Z")
        self._make("expired", "localhost", "here", past)
        self._make("other name", "elsewhere.example", "elsewhere", ("-days", "30"))

    def pair(self, kind):
        return self.folder / f"{kind}.pem", self.folder / f"{kind}.key"

    def _make(self, kind, name, extensions, dates):
        certificate, key = self.pair(kind)
        wish = self.folder / f"{kind}.csr"
        self._run(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", key, "-out", wish, "-subj", f"/CN={name}", "-config", self.config),
        )
        self._run(
            *("ca", "-batch", "-notext", "-config", self.config, "-in", wish),
            *("-out", certificate, "-cert", self.ca, "-keyfile", self.folder / "ca.key"),
            *("-extensions", extensions, *dates),
        )

    @staticmethod
    def _run(*words):
        done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"openssl {words[0]}: {done.stderr[-500:]}")
