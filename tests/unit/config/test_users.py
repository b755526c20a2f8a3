"""Public keys of every type, judged by keys that another implementation made; and files of users."""

import base64
import json
import re
import struct

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tests.bad_files import FOLDER
from ultracluster.config.loader import load, validate
from ultracluster.config.problems import InvalidSettings
from ultracluster.config.public_keys import is_private, wrong_key
from ultracluster.config.users import User, Users
from ultracluster.nodes.users import PART_LENGTH, list_parts, user_list

FORMAT = (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)


def line(private, comment="ada@laptop"):
    return f"{private.public_key().public_bytes(*FORMAT).decode()} {comment}"


def field(content):
    return struct.pack(">I", len(content)) + content


def security_key(kind, *fields):
    """A key of a hardware token, which `cryptography` cannot make: PROTOCOL.u2f of OpenSSH."""
    blob = b"".join(map(field, (kind.encode(), *fields, b"ssh:")))
    return f"{kind} {base64.b64encode(blob).decode()} ada@token"


ED25519 = line(ed25519.Ed25519PrivateKey.generate())
POINT = ec.generate_private_key(ec.SECP256R1()).public_key().public_bytes(
    serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
)  # fmt: skip
GOOD = {
    "ed25519": ED25519,
    "without a comment": ED25519.rpartition(" ")[0],
    "a comment with spaces": f"{ED25519} of 2026",
    **{curve.name: line(ec.generate_private_key(curve)) for curve in (ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1())},
    **{f"rsa-{bits}": line(rsa.generate_private_key(65537, bits)) for bits in (2048, 3072)},
    "sk-ed25519": security_key("sk-ssh-ed25519@openssh.com", b"k" * 32),
    "sk-ecdsa": security_key("sk-ecdsa-sha2-nistp256@openssh.com", b"nistp256", POINT),
}


@pytest.mark.parametrize("kind", GOOD)
def test_a_key_that_openssh_makes_is_accepted(kind):
    assert wrong_key(GOOD[kind]) is None
    assert not is_private(GOOD[kind])


@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize("cut", [1, 4, 20])
def test_a_key_that_was_cut_off_is_refused(kind, cut):
    name, body = GOOD[kind].split(" ")[:2]
    assert wrong_key(f"{name} {base64.b64encode(base64.b64decode(body)[:-cut]).decode()}")
    assert wrong_key(f"{name} {body[:-cut].rstrip('=')}%")


@pytest.mark.parametrize("kind", GOOD)
def test_a_key_with_more_after_its_end_is_refused(kind):
    name, body = GOOD[kind].split(" ")[:2]
    assert wrong_key(f"{name} {base64.b64encode(base64.b64decode(body) + field(b'x')).decode()}")


def test_a_weak_key_is_refused():
    short = rsa.generate_private_key(65537, 1024)  # noqa: S505 - to be refused
    assert wrong_key(line(short)) == "the RSA key has 1024 bits; allowed: 2048 to 16384"
    assert wrong_key(f"ssh-dss {ED25519.split()[1]}") == (
        "DSA keys are too weak, and OpenSSH does not know them any more"
    )


@pytest.mark.parametrize(
    ("form", "encryption"),
    [
        (serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()),
        (serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        (serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")),
    ],
)
def test_a_private_key_is_refused_and_never_quoted(form, encryption):
    pem = ed25519.Ed25519PrivateKey.generate().private_bytes(serialization.Encoding.PEM, form, encryption).decode()
    for text in (pem, pem.replace("\n", " "), "".join(pem.splitlines()[1:2]) if "OPENSSH" in pem else pem):
        with pytest.raises(InvalidSettings) as refused:
            User(name="ada", uid=10001, keys=(text,))
        (problem,) = refused.value.problems
        assert problem.code == "private-key"
        assert pem.splitlines()[1][:20] not in str(refused.value)


def test_the_list_of_machines_has_every_fact_on_a_line():
    ada = User(name="ada", uid=10001, gid=20000, sudo=True, keys=(GOOD["ed25519"],))
    bob = User(name="bob", uid=10002, groups=("research",), keys=(GOOD["rsa-2048"], GOOD["sk-ecdsa"]))
    text = user_list(Users(groups=({"name": "research", "gid": 20000},), users=(ada, bob)))
    assert text.splitlines() == [
        "group research 20000",
        "user ada 10001 20000 yes",
        "user bob 10002 10002 no",
        f"key ada {GOOD['ed25519']}",
        "member research bob",
        f"key bob {GOOD['rsa-2048']}",
        f"key bob {GOOD['sk-ecdsa']}",
    ]


def people_with(key, number):
    """A file of users as data, each with `key`."""
    return {"users": [{"name": f"user{i}", "uid": 10001 + i, "keys": [key]} for i in range(number)]}


def test_a_list_that_no_template_holds_is_refused(tmp_path):
    """2000 people with Ed25519 keys are not too many, and 1100 with RSA keys of 4096 bits are."""
    long = line(rsa.generate_private_key(65537, 4096))
    environment = (FOLDER / "minimal.yaml").read_text() + "access: {host: true, users: users.yaml}\n"
    (tmp_path / "test.yaml").write_text(environment)
    (tmp_path / "users.yaml").write_text(json.dumps(people_with(ED25519, 2000)))
    assert validate(tmp_path / "test.yaml").errors == ()
    (tmp_path / "users.yaml").write_text(json.dumps(people_with(long, 1100)))
    (found,) = validate(tmp_path / "test.yaml").errors
    assert (found.code, found.path) == ("wrong-length", "users")
    assert found.file == str(tmp_path / "users.yaml")
    assert re.fullmatch(
        "the list with its 1100 keys is 8[0-9]{2} KB of text; allowed: 700 KB, since it is in one "
        "CloudFormation template, of at most 1 MB",
        found.message,
    )
    (tmp_path / "users.yaml").write_text(json.dumps(people_with(long, 2000)))
    (found,) = validate(tmp_path / "test.yaml").errors
    assert (found.code, found.message) == ("users-unreadable", "users.yaml: the file is larger than 1024 KiB")
    assert "access.directory" in found.hint


def test_quotes_count_as_in_a_template():
    key, number = ED25519.rpartition(" ")[0], 1200
    Users(**people_with(f"{key} {'a' * 400}", number))
    with pytest.raises(InvalidSettings) as refused:
        Users(**people_with(f"{key} {chr(34) * 400}", number))
    assert [problem.code for problem in refused.value.problems] == ["wrong-length"]


def test_the_list_of_machines_is_ascii_whatever_a_comment_says():
    key = ED25519.rpartition(" ")[0]
    text = user_list(Users(**people_with(f"{key} Ad\u00e9le's laptop \u2014 2026", 40)))
    assert text.isascii()
    assert f"key user0 {key} Ad?le's laptop ? 2026" in text.splitlines()
    assert all(len(part.encode()) <= PART_LENGTH for part in list_parts(text))


def test_a_group_that_repeats_the_own_group_of_a_user_is_one_error():
    ada = {"name": "ada", "uid": 10001, "keys": [ED25519]}
    for gid, code, hint in (
        (10001, "duplicate-name", "remove groups[0]: ada has a group of that name and id"),
        (20000, "duplicate-name", "choose another"),
    ):
        with pytest.raises(InvalidSettings) as refused:
            Users(users=[ada], groups=[{"name": "ada", "gid": gid}])
        (problem,) = refused.value.problems
        assert (problem.code, problem.hint) == (code, hint)


def test_the_file_of_users_lies_beside_the_file_that_names_it(tmp_path):
    """A file that another one extends may be in another folder, and so may its users."""
    own, shared = tmp_path / "own", tmp_path / "shared"
    own.mkdir()
    shared.mkdir()
    key = GOOD["ed25519"]
    for folder, name in ((own, "ada"), (shared, "bob")):
        (folder / "users.yaml").write_text(f"users: [{{name: {name}, uid: 10001, keys: [{key}]}}]\n")
    (shared / "base.yaml").write_text((FOLDER / "minimal.yaml").read_text() + "access: {users: users.yaml}\n")
    (own / "test.yaml").write_text("extends: ../shared/base.yaml\n")
    assert load(own / "test.yaml").access.users.users[0].name == "bob"
    (own / "test.yaml").write_text("extends: ../shared/base.yaml\naccess: {users: users.yaml}\n")
    assert load(own / "test.yaml").access.users.users[0].name == "ada"

    (shared / "users.yaml").write_text(f"users: [{{name: root, uid: 10001, keys: [{key}]}}]\n")
    (own / "test.yaml").write_text("extends: ../shared/base.yaml\n")
    (found,) = validate(own / "test.yaml").errors
    assert (found.file, found.path, found.line) == (str(own / "../shared/users.yaml"), "users[0].name", 1)
    (shared / "users.yaml").unlink()
    (found,) = validate(own / "test.yaml").errors
    assert (found.code, found.file, found.path) == (
        "users-unreadable", str(own / "../shared/base.yaml"), "access.users"
    )  # fmt: skip
