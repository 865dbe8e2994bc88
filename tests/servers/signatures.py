"""Checks what clients sign: AWS Signature Version 4, Azure's Shared Key. Written from the clouds'
documentation; the tests of the servers compare both with the clouds' own clients."""

import base64
import hashlib
import hmac
import re
import urllib.parse


def _hmac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def sigv4_parts(request):
    """The parts of an Authorization header: its key, date, region, service, headers, signature."""
    found = re.match(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request,\s*"
        r"SignedHeaders=([^,]+),\s*Signature=([0-9a-f]{64})$",
        request.header("Authorization", ""),
    )
    if not found:
        return None
    names = ("id", "date", "region", "service", "headers", "signature")
    return dict(zip(names, found.groups(), strict=True))


def sigv4_is_right(request, secret):
    """Whether a request was signed with this secret, and its body is the one that was signed."""
    parts = sigv4_parts(request)
    if parts is None:
        return False
    told = request.header("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
    if len(told) == 64 and told != hashlib.sha256(request.body).hexdigest():
        return False
    return hmac.compare_digest(parts["signature"], _sigv4(request, parts, told, secret))


def _sigv4(request, parts, payload, secret):
    query = urllib.parse.parse_qsl(request.target.partition("?")[2], keep_blank_values=True)
    quoted = sorted((_quote(name), _quote(value)) for name, value in query)
    names = parts["headers"].split(";")
    lines = "".join(f"{name}:{' '.join(request.header(name, '').split())}\n" for name in names)
    canonical = "\n".join(
        [
            request.method,
            request.raw_path,
            "&".join(f"{name}={value}" for name, value in quoted),
            lines,
            parts["headers"],
            payload if parts["service"] == "s3" else hashlib.sha256(request.body).hexdigest(),
        ]
    )
    scope = f"{parts['date']}/{parts['region']}/{parts['service']}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", request.header("x-amz-date", ""), scope, digest])
    key = _hmac(b"AWS4" + secret.encode(), parts["date"])
    for part in (parts["region"], parts["service"], "aws4_request"):
        key = _hmac(key, part)
    return _hmac(key, text).hex()


def _quote(text):
    return urllib.parse.quote(text, safe="-_.~")


SIGNED = ("Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type",
          "Date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since",
          "Range")  # fmt: skip


def shared_key_is_right(request, account, key):
    """Whether a request was signed with Azure's Shared Key of an account."""
    scheme, _, told = request.header("Authorization", "").partition(" ")
    if scheme != "SharedKey" or not told.startswith(f"{account}:"):
        return False
    values = [request.header(name, "") for name in SIGNED]
    if values[2] == "0":
        values[2] = ""  # a length of nothing is not signed
    extra = sorted(
        (name.lower(), value) for name, value in request.headers if name.lower().startswith("x-ms-")
    )
    lines = [request.method, *values, *(f"{name}:{value}" for name, value in extra)]
    resource = f"/{account}{request.raw_path}"
    query = urllib.parse.parse_qsl(request.target.partition("?")[2], keep_blank_values=True)
    grouped = {}
    for name, value in query:
        grouped.setdefault(name.lower(), []).append(value)
    resource += "".join(f"\n{name}:{','.join(sorted(grouped[name]))}" for name in sorted(grouped))
    text = "\n".join([*lines, resource])
    right = base64.b64encode(_hmac(base64.b64decode(key), text)).decode()
    return hmac.compare_digest(told.partition(":")[2], right)
