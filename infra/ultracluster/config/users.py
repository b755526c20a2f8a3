"""The users of an environment, in a file of its own that can change without the environment file.

The file lists groups and users. Every node of PCS, and the access host, has the same users with the same ids.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from ultracluster.catalog.system_users import is_system_user
from ultracluster.config.fields import Many, text
from ultracluster.config.problems import Path, Problem, repeated, rule
from ultracluster.config.public_keys import NEW_KEY, is_private, key_hint, wrong_key
from ultracluster.config.settings import Settings

FIRST_ID, LAST_ID = 1001, 60000
"""Ids of people: 1000 is the user of the images, ubuntu or ec2-user; useradd gives ids up to UID_MAX (login.defs)."""

LONGEST_LIST = 700_000
"""Maximum bytes of the list in a template. A template has at most 1 MB (CloudFormation User Guide, "Understand
CloudFormation quotas", 2026), and parameters around the parts of the list take up to 300 KB: up to 175, with names and
tags."""

SUDO_GROUPS = ("sudo", "wheel", "admin")
"""Groups whose members may become root, on Ubuntu and on Red Hat."""

UserName = Annotated[
    str,
    text(
        r"^[a-z][a-z0-9_-]{0,31}$",
        "a name of up to 32 lower-case letters, digits, - and _ that starts with a letter",
    ),
]
"""What useradd of Debian and of Red Hat accepts, without names that start with _, which Debian keeps for services."""

Id = Annotated[int, Field(ge=FIRST_ID, le=LAST_ID)]


class Group(Settings):
    """A group that users share, such as that of a team, for folders that all of them may write."""

    name: UserName
    """Name of the group."""
    gid: Id
    """Id of the group on every node, from 1001 to 60000."""

    @rule
    def _own_name(self) -> Iterator[Problem]:
        yield from _taken_by_the_system(self.name)


class User(Settings):
    """A person with a login on every node."""

    name: UserName
    """Login name."""
    uid: Id
    """Id of the user on every node, from 1001 to 60000. Never give it to another person: files keep it."""
    gid: Id | None = None
    """Primary group: the gid of one of `groups`. Default: a group of the user's own, with the name and the id of the
    user."""
    groups: Many[str] = ()
    """Names of further groups."""
    sudo: bool = False
    """Whether the user may become root on every node, without a password."""
    keys: Annotated[Many[str], Field(min_length=1, max_length=20)]
    """Public keys for SSH, one line each as in a file that ends in .pub."""

    @property
    def primary_gid(self) -> int:
        """Id of the primary group."""
        return self.uid if self.gid is None else self.gid

    @rule
    def _own_name(self) -> Iterator[Problem]:
        yield from _taken_by_the_system(self.name)

    @rule
    def _usable_keys(self) -> Iterator[Problem]:
        for i, key in enumerate(self.keys):
            if is_private(key):
                message = "this is a private key; everyone who could read this file may have it"
                hint = f"remove it from this file and its history, and replace it: {NEW_KEY}"
                yield Problem("private-key", ("keys", i), message, hint)
            elif wrong := wrong_key(key):
                yield Problem("public-key", ("keys", i), wrong, key_hint(key))

    @rule
    def _distinct_keys(self) -> Iterator[Problem]:
        bodies = [key.split(" ")[1:2] for key in self.keys]
        for i, body in enumerate(bodies):
            if body and body in bodies[:i]:
                message = f"the key is already keys[{bodies.index(body)}]"
                yield Problem("duplicate-name", ("keys", i), message, "remove the duplicate")

    @rule
    def _distinct_groups(self) -> Iterator[Problem]:
        yield from repeated("groups", self.groups)


class Users(Settings):
    """Groups and users of an environment."""

    groups: Many[Group] = ()
    """Groups that users share."""
    users: Annotated[Many[User], Field(min_length=1, max_length=2000)]
    """Users."""

    @rule
    def _distinct_names(self) -> Iterator[Problem]:
        """Users and groups: a user has a group of the same name."""
        named: dict[str, str] = {}
        own = {user.name: user.uid for user in self.users}
        spare = {f"groups[{i}]" for i, group in enumerate(self.groups) if own.get(group.name) == group.gid}
        for path, name in self._names():
            if name in named:
                holder = named[name]
                same = f"remove {holder}: {name} has a group of that name and id"
                hint = same if holder in spare else "choose another"
                yield Problem("duplicate-name", path, f"{name} is already the name of {holder}", hint)
            named.setdefault(name, f"{path[0]}[{path[1]}]")

    @rule
    def _fits_a_template(self) -> Iterator[Problem]:
        size = len(json.dumps("\n".join(self.lines()), ensure_ascii=False).encode())
        if size > LONGEST_LIST:
            number = sum(len(user.keys) for user in self.users)
            message = (
                f"the list with its {number} keys is {-(-size // 1000)} KB of text; allowed: "
                f"{LONGEST_LIST // 1000} KB, since it is in one CloudFormation template, of at most 1 MB"
            )
            hint = "replace RSA keys by Ed25519 keys, which are shorter, or use access.directory"
            yield Problem("wrong-length", "users", message, hint)

    def lines(self) -> Iterator[str]:
        """The list in the format of create-users.sh, one fact a line: groups, users, members of groups, keys."""
        for group in self.groups:
            yield f"group {group.name} {group.gid}"
        for user in self.users:
            yield f"user {user.name} {user.uid} {user.primary_gid} {'yes' if user.sudo else 'no'}"
        for user in self.users:
            yield from (f"member {group} {user.name}" for group in user.groups)
            # of a comment only: sshd does not read it, and not every program of a node writes other letters
            keys = (key.strip().encode("ascii", "replace").decode() for key in user.keys)
            yield from (f"key {user.name} {key}" for key in keys)

    def _names(self) -> Iterator[tuple[Path, str]]:
        for i, group in enumerate(self.groups):
            yield ("groups", i, "name"), group.name
        for i, user in enumerate(self.users):
            yield ("users", i, "name"), user.name

    @rule
    def _distinct_ids(self) -> Iterator[Problem]:
        """Users with the same id share their files; so do groups."""
        uids = [user.uid for user in self.users]
        for i, uid in enumerate(uids):
            if uid in uids[:i]:
                yield _id_twice(("users", i, "uid"), uid, self.users[uids.index(uid)].name, self._ids)
        own = {user.uid: user.name for user in self.users if user.primary_gid == user.uid}
        gids = [group.gid for group in self.groups]
        for i, group in enumerate(self.groups):
            if group.gid in gids[:i]:
                yield _id_twice(("groups", i, "gid"), group.gid, self.groups[gids.index(group.gid)].name, self._ids)
            elif own.get(group.gid, group.name) != group.name:  # the same name is an error of its own
                yield _id_twice(("groups", i, "gid"), group.gid, f"the own group of {own[group.gid]}", self._ids)

    @property
    def _ids(self) -> Sequence[int]:
        return [*(user.uid for user in self.users), *(group.gid for group in self.groups)]

    @rule
    def _known_groups(self) -> Iterator[Problem]:
        names, gids = [group.name for group in self.groups], Counter(group.gid for group in self.groups)
        for i, user in enumerate(self.users):
            for j, name in enumerate(user.groups):
                if name not in names:
                    listed = f"groups lists {', '.join(names)}" if names else "groups is empty"
                    hint = _group_hint(name)
                    at: Path = ("users", i, "groups", j)
                    yield Problem("user-group-unknown", at, f"no group is called {name}; {listed}", hint)
            if user.gid not in (None, user.uid) and user.gid not in gids:
                message = f"{user.gid} is the gid of no group"
                hint = f"add a group with gid {user.gid}, or remove gid for a group of {user.name} alone"
                yield Problem("user-group-unknown", ("users", i, "gid"), message, hint)


def _group_hint(name: str) -> str:
    if name in SUDO_GROUPS:
        return f"remove {name}, and set sudo: true for the user"
    return f"remove {name}" if is_system_user(name) else f"add {name} with a gid to groups, or remove it here"


def _taken_by_the_system(name: str) -> Iterator[Problem]:
    if is_system_user(name):
        message = f"{name} is a user or a group of the nodes' image, or of software on it"
        yield Problem("user-name-reserved", "name", message, "choose another name")


def _id_twice(at: Path, taken: int, holder: str, ids: Sequence[int]) -> Problem:
    free = next(number for number in range(max(ids) + 1, LAST_ID + 1) if number not in ids) if max(ids) < LAST_ID else 0
    hint = f"set {at[-1]}: {free}" if free else "choose another id"
    return Problem("user-id-twice", at, f"{taken} is already the {at[-1]} of {holder}", hint)
