"""Public keys of SSH: which kinds may log in, and whether the text of one is whole.

Source: RFC 4253, section 6.6; RFC 5656, section 3.1; RFC 8709, section 4; OpenSSH, PROTOCOL.u2f (2026). OpenSSH 8.8
and newer refuse RSA keys of less than 1024 bits and no longer know DSA; NIST SP 800-131A allows RSA from 2048 bits on.
"""

import base64
import binascii
from collections.abc import Sequence

RSA_BITS = (2048, 16384)
"""Smallest and largest RSA key."""

CURVES = {"nistp256": 65, "nistp384": 97, "nistp521": 133}
"""Bytes of an uncompressed point of each curve."""

ECDSA, SECURITY_KEY = "ecdsa-sha2-", "@openssh.com"
ED25519, ED25519_SK, ECDSA_SK = "ssh-ed25519", "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"
MAXIMUM_LENGTH = 3500
"""Characters of a key with its comment: an RSA key of 16384 bits has 2800."""

TYPES = (ED25519, *(f"{ECDSA}{curve}" for curve in CURVES), ED25519_SK, ECDSA_SK, "ssh-rsa")
"""Kinds of keys that may log in."""

NEW_KEY = "create one with ssh-keygen -t ed25519, and list the line in its file that ends in .pub"


def is_private(text: str) -> bool:
    """Whether the text is, or contains, a private key."""
    return "PRIVATE KEY" in text or text.startswith("PuTTY-User-Key-File") or "b3BlbnNzaC1rZXktdjE" in text


def wrong_key(text: str) -> str | None:
    """Why a text is not `TYPE BASE64 [COMMENT]` with a key of one of TYPES, without quoting it; None if it is."""
    kind, _, rest = text.partition(" ")
    if "\n" in text.strip() or not text.isprintable():
        return "the key is not one line of printable characters"
    if len(text) > MAXIMUM_LENGTH:
        return f"the key has {len(text)} characters with its comment; the maximum is {MAXIMUM_LENGTH}"
    if "{{" in text:
        return "the comment contains {{, which Systems Manager does not store"
    if kind not in TYPES:
        return _other_kind(kind)
    try:
        fields = _fields(base64.b64decode(rest.split(" ", 1)[0], validate=True))
    except (binascii.Error, ValueError):
        return f"the {kind} key is truncated or is not base64"
    if not fields or fields[0] != kind.encode():
        return f"the text after {kind} is not a key of that type"
    return _wrong_fields(kind, fields[1:])


def key_hint(text: str) -> str:
    """What to do about a wrong key: the options of an authorized_keys file may stand before the type."""
    kind = next((word for word in text.split()[1:] if word in TYPES), None)
    return NEW_KEY if kind is None or text.startswith(TYPES) else f"remove what precedes {kind}"


def _other_kind(kind: str) -> str:
    if kind == "ssh-dss":
        return "DSA keys are too weak, and OpenSSH does not know them any more"
    return f"the key does not begin with one of the types {', '.join(TYPES)}"


def _fields(blob: bytes) -> list[bytes]:
    """Strings of the SSH wire format. Raises ValueError for a blob that ends inside one."""
    found: list[bytes] = []
    while blob:
        size = int.from_bytes(blob[:4])
        if len(blob) < 4 + size:
            raise ValueError
        found.append(blob[4 : 4 + size])
        blob = blob[4 + size :]
    return found


def _wrong_fields(kind: str, fields: Sequence[bytes]) -> str | None:
    """What is wrong with the parts of a key, after its type."""
    sizes = [len(field) for field in fields]
    cut = f"the {kind} key is cut off or has parts that do not belong to it"
    if kind in (ED25519, ED25519_SK):
        return None if sizes[:1] == [32] and len(sizes) == (1 if kind == ED25519 else 2) else cut
    if kind == "ssh-rsa":
        if len(fields) != 2:
            return cut
        bits = int.from_bytes(fields[1]).bit_length()
        if not RSA_BITS[0] <= bits <= RSA_BITS[1]:
            return f"the RSA key has {bits} bits; allowed: {RSA_BITS[0]} to {RSA_BITS[1]}"
        return None
    curve = kind.removeprefix("sk-").removeprefix(ECDSA).removesuffix(SECURITY_KEY)
    parts = 3 if kind == ECDSA_SK else 2
    return None if fields[:1] == [curve.encode()] and sizes[1:2] == [CURVES[curve]] and len(sizes) == parts else cut
