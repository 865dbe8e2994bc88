"""Azure Blob Storage, as far as a client of it needs, at /account/container/blob as emulators have
it, or container/blob at a host of the account. With hierarchical=True it is an account of Data
Lake Storage Gen2: folders are entries of a list. Objects' names are "container/blob"."""

import base64
import hashlib
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from servers.http_engine import Answer, http_date
from servers.objects import Page
from servers.signatures import shared_key_is_right

XML = {"Content-Type": "application/xml"}
HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'


class AzureImitation:
    missing = "BlobNotFound"

    def __init__(self, server):
        self.server = server
        self.blocks = {}  # name -> {block id: bytes}
        self.endless = 0
        self.account = server.options.get("account", "devstoreaccount1")

    def refuse(self, request):
        """An answer for those whose credentials are wrong; None: let in."""
        server, told = self.server, request.header("Authorization", "")
        if server.tokens is not None:
            if told.removeprefix("Bearer ") in server.tokens:
                return None
            return self.error(request, 401, "InvalidAuthenticationInfo")
        signature = server.options.get("sas")
        if signature is not None and request.query.get("sig") == signature:
            return None
        if signature is not None or server.keys:
            key = server.keys.get(self.account)
            if key is None or not shared_key_is_right(request, self.account, key):
                return self.error(request, 403, "AuthenticationFailed")
        return None

    def name_of(self, request):
        return request.path.lstrip("/").removeprefix(f"{self.account}/")

    def handle(self, request):
        name = self.name_of(request)
        container, _, _blob = name.partition("/")
        query = request.query
        if query.get("restype") == "container":
            if query.get("comp") == "list":
                return self.list(request, container, query)
            return Answer(201 if request.method == "PUT" else 200)
        if query.get("comp") == "blocklist" and request.method == "GET":
            return self.block_list(name)
        if request.method in ("GET", "HEAD"):
            more = {"x-ms-blob-type": "BlockBlob", "x-ms-version": "2021-08-06"}
            if self.server.options.get("hierarchical") and self._is_folder(name):
                return self.folder(more)
            return self.server.read(request, name, more)
        if request.method == "PUT" and query.get("comp") == "block":
            return self.block(request, name, query["blockid"])
        if request.method == "PUT" and query.get("comp") == "blocklist":
            return self.commit(request, name)
        if request.method == "PUT":
            return self.put(request, name)
        if request.method == "DELETE":
            return Answer(202) if self.server.objects.delete(name) else self.error(
                request, 404, self.missing)  # fmt: skip
        return self.error(request, 405, "UnsupportedHttpVerb")

    def error(self, request, status, code):
        words = f"<Message>{code}, as the test wanted it\nRequestId:7f2a</Message>"
        body = f"{HEAD}<Error><Code>{code}</Code>{words}</Error>"
        return Answer(status, {**XML, "x-ms-error-code": code}, body.encode())

    # --- folders and lists

    def _is_folder(self, name):
        names = self.server.objects.names()
        page = Page(names, f"{name}/", most=1)
        return bool(name) and bool(page.keys)

    @staticmethod
    def folder(more):
        headers = {"x-ms-meta-hdi_isfolder": "true", "x-ms-resource-type": "directory", **more}
        return Answer(200, {"ETag": '"0x8DBFOLDER000000"', **headers})

    def _with_folders(self, container):
        """The names of a container with the folders above them, sorted."""
        names, found = self.server.objects.names(), set()
        for name in names:
            inside = name.partition("/")[2]
            if not name.startswith(f"{container}/"):
                continue
            parts = inside.split("/")[:-1]
            found.update(f"{container}/{'/'.join(parts[: n + 1])}" for n in range(len(parts)))
        self.folders = found
        return sorted({*names, *found}, key=lambda name: name.encode())

    def list(self, request, container, query):
        hierarchical = self.server.options.get("hierarchical")
        self.folders = set()
        base = f"{container}/"
        marker = query.get("marker", "")
        page = Page(
            self._with_folders(container) if hierarchical else self.server.objects.names(),
            base + query.get("prefix", ""),
            query.get("delimiter", ""),
            base + base64.urlsafe_b64decode(marker).decode() if marker else "",
            min(int(query.get("maxresults", 5000)), self.server.options.get("page", 5000)),
        )
        keys = page.keys
        if "list is unsorted" in request.faults:
            keys = keys[::-1]
        if "list repeats" in request.faults:
            keys = [key for key in keys for _ in range(2)]
        next_name = page.next.removeprefix(base) if page.next else ""
        if "list loops" in request.faults:
            next_name = query.get("prefix", "") or "a"
        if "list is endless" in request.faults:
            self.endless += 1
            next_name = f"{query.get('prefix', '')}{self.endless:09d}"
        rows = [self._row(key, len(base)) for key in keys]
        rows += [
            f"<BlobPrefix><Name>{escape(folder[len(base) :])}</Name></BlobPrefix>"
            for folder in page.folders
        ]
        token = base64.urlsafe_b64encode(next_name.encode()).decode()
        body = (
            f'{HEAD}<EnumerationResults ContainerName="{escape(container)}"><Blobs>'
            f"{''.join(rows)}</Blobs><NextMarker>{token}</NextMarker></EnumerationResults>"
        )
        return Answer(200, dict(XML), body.encode())

    def _row(self, name, base):
        if name in self.folders:
            return (
                f"<Blob><Name>{escape(name[base:])}</Name><Properties>"
                "<Etag>0x8DBFOLDER000000</Etag><ResourceType>directory</ResourceType>"
                "<Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType></Properties>"
                "<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob>"
            )
        found = self.server.objects.get(name)
        kind = "<ResourceType>file</ResourceType>" if self.folders else ""
        return (
            f"<Blob><Name>{escape(name[base:])}</Name><Properties>"
            f"<Last-Modified>{http_date(found.modified)}</Last-Modified>"
            f"<Etag>{found.etag.strip(chr(34))}</Etag>{kind}"
            f"<Content-Length>{found.size}</Content-Length>"
            "<Content-Type>application/octet-stream</Content-Type>"
            "<BlobType>BlockBlob</BlobType></Properties></Blob>"
        )

    # --- uploads

    def put(self, request, name):
        if request.header("x-ms-blob-type") != "BlockBlob":
            return self.error(request, 400, "MissingRequiredHeader")
        if request.header("If-None-Match") == "*" and self.server.objects.get(name):
            return self.error(request, 409, "BlobAlreadyExists")
        return Answer(201, {"ETag": self.server.objects.put(name, request.body).etag})

    def block(self, request, name, number):
        self.blocks.setdefault(name, {})[number] = request.body
        digest = base64.b64encode(hashlib.md5(request.body).digest()).decode()
        return Answer(201, {"Content-MD5": digest})

    def commit(self, request, name):
        if request.header("If-None-Match") == "*" and self.server.objects.get(name):
            return self.error(request, 409, "BlobAlreadyExists")
        blocks, whole = self.blocks.get(name, {}), []
        for block in ElementTree.fromstring(request.body):
            if block.text not in blocks:
                return self.error(request, 400, "InvalidBlockList")
            whole.append(blocks[block.text])
        self.blocks.pop(name, None)
        return Answer(201, {"ETag": self.server.objects.put(name, b"".join(whole)).etag})

    def block_list(self, name):
        rows = "".join(
            f"<Block><Name>{escape(number)}</Name><Size>{len(body)}</Size></Block>"
            for number, body in self.blocks.get(name, {}).items()
        )
        body = f"{HEAD}<BlockList><UncommittedBlocks>{rows}</UncommittedBlocks></BlockList>"
        return Answer(200, dict(XML), body.encode())
