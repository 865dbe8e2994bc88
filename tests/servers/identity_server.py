"""Imitations of the endpoints that hand out credentials: AWS (instance metadata, containers, STS),
Azure (managed identity, Entra), Google (metadata server, OAuth token). One server plays them all;
environment() gives the variables that lead a client to one of them."""

import json
import time
import urllib.parse

from servers.http_engine import Answer, Engine
from servers.signatures import sigv4_parts

JSON = {"Content-Type": "application/json"}


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


class IdentityServer:
    """keys: (id, secret, session token), token: what bearers are given. `lasts` seconds each. Every
    hand-out can be made another by counting: new_each=True gives the n-th "TOKEN-n"."""

    def __init__(self, keys=None, token="bearer-of-the-test", lasts=3600, new_each=False):
        self.keys = keys or ("ASIATEST", "secret-of-the-test", "session-of-the-test")
        self.token, self.lasts, self.new_each = token, lasts, new_each
        self.given = []  # (kind, session or bearer token)
        self.delay = 0.0
        self.status = None  # answers this status to everything
        self.engine = Engine(self._handle)

    @property
    def url(self):
        return self.engine.url

    @property
    def requests(self):
        return self.engine.requests

    def stop(self):
        self.engine.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def environment(self, kind, folder=None):
        """What must be set so that a client finds the endpoint of this kind."""
        if folder is not None:
            (folder / "web-identity").write_text("jwt-of-the-test")
        return {
            "imds": {
                "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.url,
                "AWS_EC2_METADATA_DISABLED": "false",
                "AWS_METADATA_SERVICE_TIMEOUT": "20",  # a busy machine needs more than 1 s
            },
            "container": {
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{self.url}/container",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": "container-password",
                "AWS_METADATA_SERVICE_TIMEOUT": "20",
            },
            "web identity": {
                "AWS_ENDPOINT_URL_STS": self.url,
                "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/test",
                "AWS_WEB_IDENTITY_TOKEN_FILE": f"{folder}/web-identity",
                "AWS_REGION": "us-east-1",
            },
            "azure identity": {
                "IDENTITY_ENDPOINT": f"{self.url}/msi/token",
                "IDENTITY_HEADER": "identity-password",
            },
            "azure imds": {"AZURE_POD_IDENTITY_AUTHORITY_HOST": self.url},
            "azure workload": {
                "AZURE_AUTHORITY_HOST": self.url,
                "AZURE_TENANT_ID": "tenant-of-the-test",
                "AZURE_CLIENT_ID": "client-of-the-test",
                "AZURE_FEDERATED_TOKEN_FILE": f"{folder}/web-identity",
            },
            "azure secret": {
                "AZURE_AUTHORITY_HOST": self.url,
                "AZURE_TENANT_ID": "tenant-of-the-test",
                "AZURE_CLIENT_ID": "client-of-the-test",
                "AZURE_CLIENT_SECRET": "client-password",
            },
            "gce": {"GCE_METADATA_HOST": self.url.removeprefix("http://")},
        }[kind]

    # --- on the engine's thread

    def _handle(self, request):
        if self.status:
            return Answer(self.status, delay=self.delay)
        answer = self._route(request)
        answer.delay = self.delay
        return answer

    def _route(self, request):
        path = request.path
        if path.startswith("/latest/"):
            return self._imds(request, path.removeprefix("/latest/"))
        if path == "/container":
            return self._container(request)
        if path in ("/msi/token", "/metadata/identity/oauth2/token"):
            return self._azure_identity(request)
        if path.endswith("/oauth2/v2.0/token"):
            return self._azure_entra(request)
        if path.startswith("/computeMetadata/"):
            return self._google(request)
        if path == "/token":
            return self._oauth(request)
        if path == "/":
            return self._sts(request)
        return Answer(404)

    def _secret(self, kind):
        """The keys that are handed out now."""
        name, secret, session = self.keys
        if self.new_each:
            session = f"{session}-{len(self.given) + 1}"
        self.given.append((kind, session))
        return {
            "AccessKeyId": name,
            "SecretAccessKey": secret,
            "Token": session,
            "Expiration": stamp(time.time() + self.lasts),
        }

    def _bearer(self, kind):
        token = f"{self.token}-{len(self.given) + 1}" if self.new_each else self.token
        self.given.append((kind, token))
        return token

    def _imds(self, request, path):
        if path == "api/token":
            if request.method != "PUT" or not request.header(
                "X-aws-ec2-metadata-token-ttl-seconds"
            ):
                return Answer(400)
            ttl = request.header("X-aws-ec2-metadata-token-ttl-seconds")
            headers = {"X-aws-ec2-metadata-token-ttl-seconds": ttl}
            return Answer(200, headers, b"imds-password")
        if request.header("X-aws-ec2-metadata-token") != "imds-password":
            return Answer(401)
        folder = "meta-data/iam/security-credentials"
        if path.rstrip("/") == folder:
            return Answer(200, {}, b"role-of-the-test")
        if path == f"{folder}/role-of-the-test":
            told = {"Code": "Success", "Type": "AWS-HMAC", **self._secret("imds")}
            return Answer(200, dict(JSON), json.dumps(told).encode())
        if path == "meta-data/placement/region":
            return Answer(200, {}, b"us-east-1")
        return Answer(404)

    def _container(self, request):
        if request.header("Authorization") != "container-password":
            return Answer(401, dict(JSON), b'{"code": "AccessDenied"}')
        return Answer(200, dict(JSON), json.dumps(self._secret("container")).encode())

    def _sts(self, request):
        form = dict(urllib.parse.parse_qsl(request.body.decode())) or request.query
        action = form.get("Action", "")
        right = {
            "AssumeRoleWithWebIdentity": form.get("WebIdentityToken") == "jwt-of-the-test",
            "AssumeRole": sigv4_parts(request) is not None,
        }.get(action, False)
        if not right:
            body = "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>"
            return Answer(403, {"Content-Type": "text/xml"}, body.encode())
        keys = self._secret(action)
        body = (
            f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result>'
            f"<Credentials><AccessKeyId>{keys['AccessKeyId']}</AccessKeyId>"
            f"<SecretAccessKey>{keys['SecretAccessKey']}</SecretAccessKey>"
            f"<SessionToken>{keys['Token']}</SessionToken>"
            f"<Expiration>{keys['Expiration']}</Expiration></Credentials>"
            f"</{action}Result></{action}Response>"
        )
        return Answer(200, {"Content-Type": "text/xml"}, body.encode())

    def _azure_identity(self, request):
        wanted = request.path == "/msi/token"
        if wanted and request.header("X-IDENTITY-HEADER") != "identity-password":
            return Answer(401)
        if not wanted and request.header("Metadata") != "true":
            return Answer(400)
        if "storage.azure.com" not in request.query.get("resource", ""):
            return Answer(400)
        token = self._bearer("azure identity")
        told = {
            "access_token": token,
            "expires_in": str(self.lasts),
            "expires_on": str(int(time.time()) + self.lasts),
            "resource": "https://storage.azure.com/",
            "token_type": "Bearer",
        }
        return Answer(200, dict(JSON), json.dumps(told).encode())

    def _azure_entra(self, request):
        form = dict(urllib.parse.parse_qsl(request.body.decode()))
        right = (
            form.get("client_secret") == "client-password"
            or form.get("client_assertion") == "jwt-of-the-test"
        )
        if form.get("client_id") != "client-of-the-test" or not right:
            return Answer(401, dict(JSON), b'{"error": "invalid_client"}')
        told = {
            "access_token": self._bearer("azure entra"),
            "expires_in": self.lasts,
            "token_type": "Bearer",
        }
        return Answer(200, dict(JSON), json.dumps(told).encode())

    def _google(self, request):
        if request.header("Metadata-Flavor") != "Google":
            return Answer(403)
        headers = {"Metadata-Flavor": "Google", **JSON}
        if not request.path.endswith("/token"):
            return Answer(404, headers)
        told = {
            "access_token": self._bearer("gce"),
            "expires_in": self.lasts,
            "token_type": "Bearer",
        }
        return Answer(200, headers, json.dumps(told).encode())

    def _oauth(self, request):
        form = dict(urllib.parse.parse_qsl(request.body.decode()))
        if not (form.get("refresh_token") == "refresh-password" or form.get("assertion")):
            return Answer(400, dict(JSON), b'{"error": "invalid_grant"}')
        told = {
            "access_token": self._bearer("oauth"),
            "expires_in": self.lasts,
            "token_type": "Bearer",
        }
        return Answer(200, dict(JSON), json.dumps(told).encode())
