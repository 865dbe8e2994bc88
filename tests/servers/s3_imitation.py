"""S3, as far as a client of it needs: lists, reads, whole and multipart uploads, signatures; path
style (/bucket/key) and virtual style (bucket.localhost). The same with bearer tokens is Google's
XML interface. Objects' names are "bucket/key"."""

import base64
import hashlib
import urllib.parse
import uuid
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from servers.http_engine import Answer
from servers.objects import Page
from servers.signatures import sigv4_is_right, sigv4_parts

XML = {"Content-Type": "application/xml"}
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


class S3Imitation:
    missing = "NoSuchKey"

    def __init__(self, server):
        self.server = server
        self.uploads = {}  # id -> (name, {number: bytes})
        self.endless = 0

    # --- who may come in

    def refuse(self, request):
        """An answer for those whose credentials are wrong; None: let in."""
        told = request.header("Authorization", "")
        server = self.server
        if server.tokens is not None:
            if told.removeprefix("Bearer ") in server.tokens:
                return None
            return self.error(request, 401 if server.kind == "gs" else 403, "ExpiredToken")
        if server.sessions is not None:
            if request.header("x-amz-security-token") not in server.sessions:
                return self.error(request, 403, "ExpiredToken")
        if not server.keys:
            return None
        parts = sigv4_parts(request)
        if parts is None:
            return self.error(request, 403, "AccessDenied")
        if parts["id"] not in server.keys:
            return self.error(request, 403, "InvalidAccessKeyId")
        region = server.options.get("region")
        if region and parts["region"] != region:
            answer = self.error(request, 400, "AuthorizationHeaderMalformed")
            answer.headers["x-amz-bucket-region"] = region
            return answer
        if not sigv4_is_right(request, server.keys[parts["id"]]):
            return self.error(request, 403, "SignatureDoesNotMatch")
        return None

    # --- what they want

    def name_of(self, request):
        """ "bucket/key"; "bucket" for the bucket itself."""
        host = request.header("Host", "").partition(":")[0]
        path = request.path.lstrip("/")
        if host.endswith(".localhost"):
            return f"{host.removesuffix('.localhost')}/{path}".rstrip("/" if not path else "")
        return path

    def handle(self, request):
        name, query = self.name_of(request), request.query
        bucket, _, key = name.partition("/")
        if not key:
            return self.bucket(request, bucket, query)
        if request.method in ("GET", "HEAD") and "uploadId" not in query:
            return self.server.read(request, name)
        if request.method == "GET":
            return self.parts(request, query["uploadId"])
        if request.method == "POST" and "uploads" in query:
            return self.begin(name)
        if request.method == "POST":
            return self.finish(request, name, query["uploadId"])
        if request.method == "PUT" and "uploadId" in query:
            return self.part(request, query)
        if request.method == "PUT":
            return self.put(request, name)
        if request.method == "DELETE" and "uploadId" in query:
            self.uploads.pop(query["uploadId"], None)
            return Answer(204)
        if request.method == "DELETE":
            self.server.objects.delete(name)
            return Answer(204)
        return self.error(request, 405, "MethodNotAllowed")

    def bucket(self, request, bucket, query):
        if request.method == "PUT":
            return Answer(200)
        if request.method == "HEAD":
            return Answer(200)
        if "uploads" in query:
            return self.list_uploads(bucket, query)
        return self.list(request, bucket, query)

    def error(self, request, status, code):
        words = f"<Message>{code}, as the test wanted it</Message>"
        body = f"<Error><Code>{code}</Code>{words}<RequestId>4442587FB7D0A2F9</RequestId></Error>"
        return Answer(status, dict(XML), (HEAD + body).encode())

    # --- lists

    def list(self, request, bucket, query):
        v2 = query.get("list-type") == "2"
        after = query.get("continuation-token") or query.get("start-after", "")
        if not v2:
            after = query.get("marker", "")
        base = f"{bucket}/"
        page = Page(
            self.server.objects.names(),
            base + query.get("prefix", ""),
            query.get("delimiter", ""),
            base + after if after else "",
            min(int(query.get("max-keys", 1000)), self.server.options.get("page", 1000)),
        )
        keys = page.keys
        if "list is unsorted" in request.faults:
            keys = keys[::-1]
        if "list repeats" in request.faults:
            keys = [key for key in keys for _ in range(2)]
        next_token = page.next.removeprefix(base) if page.next else None
        if "list loops" in request.faults:
            next_token = query.get("prefix", "") or "a"
        if "list is endless" in request.faults:
            self.endless += 1
            next_token = f"{query.get('prefix', '')}{self.endless:09d}"
        return Answer(200, dict(XML), self._list_xml(query, bucket, keys, page, next_token, v2))

    def _list_xml(self, query, bucket, keys, page, next_token, v2):
        base = len(bucket) + 1
        quote = urllib.parse.quote if query.get("encoding-type") == "url" else escape
        rows = [self._row(quote(key[base:]), key) for key in keys]
        rows += [
            f"<CommonPrefixes><Prefix>{quote(folder[base:])}</Prefix></CommonPrefixes>"
            for folder in page.folders
        ]
        more = "<EncodingType>url</EncodingType>" if quote is not escape else ""
        if next_token is not None:
            name = "NextContinuationToken" if v2 else "NextMarker"
            more += f"<{name}>{escape(next_token)}</{name}>"
        truncated = "true" if next_token is not None else "false"
        return (
            f"{HEAD}<ListBucketResult {NAMESPACE}><Name>{escape(bucket)}</Name>"
            f"<Prefix>{quote(query.get('prefix', ''))}</Prefix><KeyCount>{len(rows)}</KeyCount>"
            f"<IsTruncated>{truncated}</IsTruncated>{more}{''.join(rows)}</ListBucketResult>"
        ).encode()

    def _row(self, key, name):
        found = self.server.objects.get(name)
        return (
            f"<Contents><Key>{key}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>"
            f"<ETag>{escape(found.etag, {chr(34): '&quot;'})}</ETag><Size>{found.size}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
        )

    # --- uploads

    def damage(self, request):
        """An answer where the body is not what its sender hashed; None: it is. With object_lock a
        hash must be told."""
        told = request.header("Content-MD5")
        if told is None:
            missing = self.server.options.get("object_lock")
            return self.error(request, 400, "InvalidRequest") if missing else None
        right = base64.b64encode(hashlib.md5(request.body).digest()).decode()
        return None if told == right else self.error(request, 400, "BadDigest")

    def put(self, request, name):
        damage = self.damage(request)
        if damage:
            return damage
        if request.header("If-None-Match") == "*" and self.server.objects.get(name):
            return self.error(request, 412, "PreconditionFailed")
        made = self.server.objects.put(name, request.body)
        return Answer(200, {"ETag": made.etag})

    def begin(self, name):
        number = uuid.uuid4().hex
        self.uploads[number] = (name, {})
        bucket, _, key = name.partition("/")
        body = (
            f"{HEAD}<InitiateMultipartUploadResult {NAMESPACE}><Bucket>{bucket}</Bucket>"
            f"<Key>{escape(key)}</Key><UploadId>{number}</UploadId></InitiateMultipartUploadResult>"
        )
        return Answer(200, dict(XML), body.encode())

    def part(self, request, query):
        if query["uploadId"] not in self.uploads:
            return self.error(request, 404, "NoSuchUpload")
        damage = self.damage(request)
        if damage:
            return damage
        self.uploads[query["uploadId"]][1][int(query["partNumber"])] = request.body
        return Answer(200, {"ETag": f'"{hashlib.md5(request.body).hexdigest()}"'})

    def finish(self, request, name, number):
        if number not in self.uploads:
            return self.error(request, 404, "NoSuchUpload")
        if request.header("If-None-Match") == "*" and self.server.objects.get(name):
            return self.error(request, 412, "PreconditionFailed")
        parts, whole, last, hashes = self.uploads[number][1], b"", 0, b""
        for part in ElementTree.fromstring(request.body).iter():
            if not part.tag.endswith("}Part") and part.tag != "Part":
                continue
            values = {child.tag.rpartition("}")[2]: child.text for child in part}
            at = int(values["PartNumber"])
            body = parts.get(at)
            told = values["ETag"].strip('"')
            if body is None or at <= last or told != hashlib.md5(body).hexdigest():
                return self.error(request, 400, "InvalidPart")
            whole, last = whole + body, at
            hashes += hashlib.md5(body).digest()
        made = self.server.objects.put(name, whole)
        made.etag = f'"{hashlib.md5(hashes).hexdigest()}-{len(hashes) // 16}"'
        del self.uploads[number]
        body = f"{HEAD}<CompleteMultipartUploadResult {NAMESPACE}><ETag>{escape(made.etag)}</ETag>"
        return Answer(200, dict(XML), (body + "</CompleteMultipartUploadResult>").encode())

    def parts(self, request, number):
        if number not in self.uploads:
            return self.error(request, 404, "NoSuchUpload")
        rows = "".join(
            f'<Part><PartNumber>{at}</PartNumber><ETag>"{hashlib.md5(body).hexdigest()}"</ETag>'
            f"<Size>{len(body)}</Size></Part>"
            for at, body in sorted(self.uploads[number][1].items())
        )
        body = f"{HEAD}<ListPartsResult {NAMESPACE}><IsTruncated>false</IsTruncated>{rows}"
        return Answer(200, dict(XML), (body + "</ListPartsResult>").encode())

    def list_uploads(self, bucket, query):
        prefix = f"{bucket}/{query.get('prefix', '')}"
        rows = "".join(
            f"<Upload><Key>{escape(name.partition('/')[2])}</Key><UploadId>{number}</UploadId>"
            "</Upload>"
            for number, (name, _) in self.uploads.items()
            if name.startswith(prefix)
        )
        body = f"{HEAD}<ListMultipartUploadsResult {NAMESPACE}><IsTruncated>false</IsTruncated>"
        return Answer(200, dict(XML), f"{body}{rows}</ListMultipartUploadsResult>".encode())
