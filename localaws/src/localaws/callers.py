"""Access control of the server: programs that sign requests with its secret are served, web pages are not.

The server runs code for its callers (custom resources), so every request must prove that it comes from the owner. It is
signed with Signature Version 4, in a header or a presigned URL. Presigned S3 URLs may have the older signature that
boto3 still generates for some Regions.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from functools import reduce
from io import BytesIO
from urllib.parse import parse_qsl, quote, urlsplit

from botocore.auth import HmacV1Auth
from botocore.utils import normalize_url_path
from werkzeug.wrappers import Request

from localaws import accounts
from localaws.server import HOST, SECRET_HEADER

LARGEST_HASHED_BODY = 64 * 1024 * 1024

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 +Credential=(?P<credential>[^, ]+) *, *SignedHeaders=(?P<headers>[^, ]+) *, *"
    r"Signature=(?P<signature>[0-9a-f]{64})"
)
_ADVICE = "Run `. .localaws/env` in this shell"


class NotServed(Exception):
    """The server refuses this request; the message is the reason."""


def check_origin(request: Request) -> None:
    """Raise NotServed for requests of a web page, or for another host name.

    Browsers add Origin or Sec-Fetch-Site to the requests of a page; other programs do not. The Host header is checked
    because a page can point its own domain name to 127.0.0.1.
    """
    host = request.environ.get("HTTP_HOST", "")
    if not is_local(host):
        raise NotServed("The embedded AWS answers requests for localhost only")
    own = [f"http://{name}:{request.environ['SERVER_PORT']}" for name in ("localhost", HOST)]
    own_origin = request.headers.get("Origin", own[0]) in own
    if not own_origin or request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        raise NotServed("The embedded AWS does not answer web pages")


def is_local(host: str) -> bool:
    """Whether a Host header names this machine."""
    name = host.rsplit(":", 1)[0]
    return name in ("localhost", HOST) or name.endswith(".localhost")


def check_secret(request: Request, secret: str) -> None:
    """Raise NotServed unless the request carries the server's secret in its header."""
    given = request.headers.get(SECRET_HEADER, "")
    if not hmac.compare_digest(given.encode(), secret.encode()):
        raise NotServed(f"{SECRET_HEADER} is not the secret of this server; it is in the file .localaws/secret")


def check_signature(request: Request, secret: str) -> None:
    """Raise NotServed unless the request is signed with the server's secret or with a key that it issued.

    `secret` is the secret access key of every account. Assumed roles and IAM users have their own keys.
    """
    if "Authorization" in request.headers:
        check: Callable[[Request, str], None] = _check_header
    elif "X-Amz-Signature" in request.args:
        check = _check_presigned
    elif "AWSAccessKeyId" in request.args:
        check = _check_presigned_s3
    else:
        raise NotServed(f"The request is not signed. {_ADVICE}")
    try:
        check(request, secret)
    except (OSError, ValueError) as error:  # of a URL or a chunked body that cannot be parsed
        raise NotServed(f"The request is malformed: {error}") from error


def service(request: Request) -> str:
    """The service that the request is signed for; an empty string when it is not signed."""
    found = _AUTHORIZATION.match(request.headers.get("Authorization", ""))
    credential = found["credential"] if found else request.args.get("X-Amz-Credential", "")
    return str([*credential.split("/"), "", "", "", ""][3])


def _check_header(request: Request, secret: str) -> None:
    found = _AUTHORIZATION.fullmatch(request.headers["Authorization"].strip())
    if not found:
        raise NotServed(f"The request is not signed with AWS Signature Version 4. {_ADVICE}")
    date = request.headers.get("X-Amz-Date", "")
    # S3 clients sign the hash that they state, or that there is none. All other bodies are hashed here.
    stated = request.headers.get("X-Amz-Content-Sha256", "") if service(request) == "s3" else ""
    payload = stated or _body_hash(request)
    _check_version_4(request, secret, found["credential"], found["headers"], found["signature"], date, payload)


def _check_presigned(request: Request, secret: str) -> None:
    args = request.args
    payload = "UNSIGNED-PAYLOAD" if service(request) == "s3" else _body_hash(request)
    _check_version_4(
        request,
        secret,
        args.get("X-Amz-Credential", ""),
        args.get("X-Amz-SignedHeaders", ""),
        args["X-Amz-Signature"],
        args.get("X-Amz-Date", ""),
        args.get("X-Amz-Content-Sha256") or payload,
    )


def _check_version_4(
    request: Request, secret: str, credential: str, signed_headers: str, signature: str, date: str, payload: str
) -> None:
    """IAM User Guide, "Create a signed AWS API request"."""
    access_key, _, scope = credential.partition("/")
    path, _, query = request.environ["REQUEST_URI"].partition("?")
    if service(request) != "s3":
        path = quote(normalize_url_path(path), safe="/~")
    values = (" ".join(request.headers.get(name, "").split()) for name in signed_headers.split(";"))
    headers = [f"{name}:{value}\n" for name, value in zip(signed_headers.split(";"), values, strict=True)]
    parameters = sorted(part.partition("=")[::2] for part in query.split("&") if part)
    canonical = [
        request.method,
        path,
        "&".join(f"{name}={value}" for name, value in parameters if name != "X-Amz-Signature"),
        "".join(headers),
        signed_headers,
        payload,
    ]
    to_sign = "\n".join(["AWS4-HMAC-SHA256", date, scope, _sha256("\n".join(canonical).encode())])
    start = f"AWS4{_secret_access_key(access_key, secret)}".encode()
    expected = reduce(_hmac, [*scope.split("/"), to_sign], start).hex()
    _check_equal(signature, expected)


def _check_presigned_s3(request: Request, secret: str) -> None:
    """Amazon S3 User Guide, "Authenticating requests (AWS signature version 2)", query string authentication."""
    path, _, query = request.environ["REQUEST_URI"].partition("?")
    given = {name.lower(): value for name, value in [*request.headers.items(), *parse_qsl(query)]}
    amazon = [f"{name}:{value.strip()}" for name, value in sorted(given.items()) if name.startswith("x-amz-")]
    resource = HmacV1Auth(None).canonical_resource(urlsplit(f"http://{HOST}{path}?{query}"))
    to_sign = [request.method, *(given.get(name, "") for name in ("content-md5", "content-type", "expires")), *amazon]
    secret_access_key = _secret_access_key(request.args["AWSAccessKeyId"], secret)
    made = hmac.digest(secret_access_key.encode(), "\n".join([*to_sign, resource]).encode(), "sha1")
    _check_equal(given.get("signature", ""), base64.b64encode(made).decode())


def _secret_access_key(access_key: str, secret: str) -> str:
    """The secret access key of an access key. NotServed for access keys that this server does not know."""
    from moto.iam.models import iam_backends

    if accounts.is_access_key(access_key):
        return secret
    for partitions in list(iam_backends.values()):
        for backend in list(partitions.values()):
            if access_key in backend.access_keys:
                return str(backend.access_keys[access_key].secret_access_key)
    raise NotServed(f"The access key {access_key} is not one of this server. {_ADVICE}")


def _check_equal(given: str, expected: str) -> None:
    if not hmac.compare_digest(given.encode(), expected.encode()):
        raise NotServed(
            f"The request is not signed with the secret of this server; each start makes a new one. {_ADVICE}"
        )


def _body_hash(request: Request) -> str:
    """The hash of the body. The body can be read again afterwards."""
    body = request.stream.read(LARGEST_HASHED_BODY + 1)
    if len(body) > LARGEST_HASHED_BODY:
        raise NotServed(f"The body is longer than {LARGEST_HASHED_BODY} bytes")
    request.environ["wsgi.input"] = BytesIO(body)
    request.environ["CONTENT_LENGTH"] = str(len(body))
    return _sha256(body)


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
