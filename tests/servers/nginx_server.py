"""nginx (Debian's nginx-light): ranges, a folder behind a password, TLS with three certificates,
HTTP/2."""

import base64
import hashlib
import os
import pathlib
import shutil

from servers.processes import NotAvailable, Program, free_port

USER, PASSWORD = "reader", "password-of-nginx"

CONFIG = """
daemon off;
{user}
worker_processes {workers};
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_requests 1000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    types {{ }}
    default_type application/octet-stream;
    server {{
        listen 127.0.0.1:{port};
        location / {{ root {root}; }}
        location /private/ {{
            alias {root}/;
            auth_basic "private";
            auth_basic_user_file {folder}/users;
        }}
        location /packed/ {{
            alias {root}/;
            gzip on;
            gzip_min_length 1;
            gzip_types *;
        }}
    }}
{tls}
}}
"""

TLS = """
    server {{
        listen 127.0.0.1:{port} ssl{http2};
        ssl_certificate "{certificate}";
        ssl_certificate_key "{key}";
        location / {{ root {root}; }}
    }}
"""


def find():
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/sbin")
    if not found:
        raise NotAvailable("nginx is not installed (Debian: nginx-light)")
    return found


class Nginx:
    """url: plain HTTP. tls[kind]: https, for the kinds of certificates; "http2" has a good one."""

    def __init__(self, root, folder, certificates=None, workers=1):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        digest = base64.b64encode(hashlib.sha1(PASSWORD.encode()).digest()).decode()
        (self.folder / "users").write_text(f"{USER}:{{SHA}}{digest}\n")
        self.tls = {}
        self._program = Program(
            lambda port: self._command(port, root, certificates, workers), self.folder / "log"
        )
        self.url = f"http://127.0.0.1:{self._program.port}"
        self.private_url = f"{self.url}/private"

    def _command(self, port, root, certificates, workers):
        parts = []
        for kind in ("good", "expired", "other name", "http2") if certificates else ():
            own = free_port()
            certificate, key = certificates.pair("good" if kind == "http2" else kind)
            http2 = " http2" if kind == "http2" else ""
            parts.append(
                TLS.format(port=own, certificate=certificate, key=key, root=root, http2=http2)
            )
            self.tls[kind] = f"https://127.0.0.1:{own}"
        text = CONFIG.format(
            # root gives its rights away, and then could not read the tests' folders
            user="user root;" if os.getuid() == 0 else "",
            folder=self.folder,
            port=port,
            root=root,
            workers=workers,
            tls="".join(parts),
        )
        config = self.folder / "nginx.conf"
        config.write_text(text)
        return [find(), "-p", self.folder, "-c", config]

    def stop(self):
        self._program.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
