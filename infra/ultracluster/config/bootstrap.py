"""Boot steps of one's own: scripts that nodes run after ours, further policies of their role, and security groups."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.effects import NEW_NODES
from ultracluster.config.fields import KIND, MAPPING, TEXT, Many, PolicyArn, SecurityGroupId, text
from ultracluster.config.named_files import NamedFile
from ultracluster.config.problems import Path, Problem, repeated, rule
from ultracluster.config.reboots import stops_node
from ultracluster.config.settings import Settings

MAXIMUM_SCRIPTS = 8
MAXIMUM_BYTES = 128 * 1024
"""Limits of the scripts of a node group. All of them are one script for PCS, which takes 2 MiB.

Source: AWS PCS User Guide, "Configure node lifecycle actions" (2026).
"""

MAXIMUM_POLICIES = 4
"""Policies that a role can have beside ours: IAM attaches 10 to a role, and an update adds one for a while.

Source: IAM User Guide, "IAM and AWS STS quotas" (2026).
"""

INTERFACE_GROUPS = 5
"""Security groups of a network interface (Amazon VPC User Guide, "Amazon VPC quotas", security groups, 2026)."""

TIMEOUT_SECONDS = 600

_SECRETS = {
    "an AWS access key id": re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b"),
    "an AWS secret access key": re.compile(r"(?i)aws_secret_access_key[\"']?\s*[=:]\s*[\"']?[A-Za-z0-9/+]{40}\b"),
    "a private key": re.compile(r"-----BEGIN ([A-Z]+ )*PRIVATE KEY-----"),
    "a token of GitHub": re.compile(r"\b(gh[opsu]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{40})"),
    "a token of Hugging Face": re.compile(r"\bhf_[A-Za-z0-9]{30}"),
}
"""Secrets that can be told from other text by their form."""

_S3 = re.compile(r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[^\s/][^\s]*$")
S3Uri = Annotated[str, text(_S3.pattern, "an S3 URI such as s3://bucket/site.sh")]


class Script(Settings):
    """A script that nodes run at their first boot, as root: a file beside the environment file, or an object in S3."""

    file: Annotated[NamedFile | None, NEW_NODES] = None
    """Path of the script, relative to the environment file and in its folder."""
    s3: Annotated[S3Uri | None, NEW_NODES] = None
    """URI of the script in S3. It needs version_id and sha256."""
    version_id: Annotated[Annotated[str, text(r"^[!-~]{1,1024}$", "the id of an object version")] | None, NEW_NODES] = (
        None
    )
    """Version of the S3 object."""
    sha256: Annotated[
        Annotated[str, text(r"^[0-9a-f]{64}$", "64 hexadecimal digits in lower case")] | None, NEW_NODES
    ] = None
    """SHA-256 of the S3 object. A node runs nothing else."""
    timeout_seconds: Annotated[int, Field(ge=1, le=3600), NEW_NODES] = TIMEOUT_SECONDS
    """Seconds after which the script is stopped, which is a failure."""
    on_failure: Annotated[Literal["stop", "continue"], NEW_NODES] = "stop"
    """stop: a node on which the script fails takes no jobs and is replaced. continue: the failure is only logged."""

    @property
    def source(self) -> str:
        """The path or URI, as it is written."""
        return self.s3 or str(self.file or "")

    @property
    def name(self) -> str:
        """Name of the file, with the characters that every file system takes."""
        return re.sub(r"[^A-Za-z0-9._-]", "-", self.source.rpartition("/")[2])

    @property
    def bucket_and_key(self) -> tuple[str, str] | None:
        """Bucket and key of an S3 object; None for a file."""
        if not self.s3:
            return None
        bucket, _, key = self.s3.removeprefix("s3://").partition("/")
        return bucket, key

    @cached_property
    def content(self) -> bytes:
        """Content of a file, empty for an S3 object. Raises OSError."""
        return self.file.path.read_bytes() if self.file else b""

    @property
    def checksum(self) -> str:
        """SHA-256 of the content in hexadecimal."""
        return self.sha256 or hashlib.sha256(self.content).hexdigest()

    @rule
    def _one_source(self) -> Iterator[Problem]:
        if not (self.file or self.s3):
            message, hint = "the script has neither file nor s3", "set file to the path of the script"
            yield Problem("bootstrap-source", (), message, hint)
        elif self.file and self.s3:
            yield Problem("bootstrap-source", "s3", "the script has both file and s3", "remove one of them")

    @rule
    def _pinned(self) -> Iterator[Problem]:
        """Without a version and a checksum the content of an object may change between two nodes."""
        missing = [key for key in ("version_id", "sha256") if getattr(self, key) is None]
        if self.s3 and not self.file and missing:
            keys = " and ".join(missing)
            message = f"without {keys} nodes could run different contents of {self.s3}"
            yield Problem("bootstrap-not-pinned", "s3", message, f"set {keys}, of the object in S3")

    @rule
    def _pins_of_a_file(self) -> Iterator[Problem]:
        for key in ("version_id", "sha256"):
            if self.file and not self.s3 and getattr(self, key) is not None:
                message = f"{key} is for objects in S3; the checksum of a file is computed"
                yield Problem("bootstrap-source", key, message, f"remove {key}")

    @rule
    def _usable_file(self) -> Iterator[Problem]:
        if self.file and not self.s3:
            yield from file_problems(self.file, "file")


Bootstrap = Annotated[
    Many[Annotated[Annotated[NamedFile, TEXT] | Annotated[Script, MAPPING], KIND]], Field(max_length=MAXIMUM_SCRIPTS)
]
"""Scripts in order, each as a path or as a mapping."""

Policies = Annotated[Many[PolicyArn], Field(max_length=MAXIMUM_POLICIES)]
SecurityGroups = Many[SecurityGroupId]


def scripts(bootstrap: Sequence[NamedFile | Script]) -> tuple[Script, ...]:
    """Every entry of `bootstrap` as a mapping."""
    return tuple(each if isinstance(each, Script) else Script.model_construct(file=each) for each in bootstrap)


def boot_problems(
    bootstrap: Sequence[NamedFile | Script], policies: Sequence[str], groups: Sequence[str], *, own_groups: int
) -> Iterator[Problem]:
    """Problems of the three keys of a node group. `own_groups` is the number of our groups on each interface."""
    yield from repeated("bootstrap", [script.source for script in scripts(bootstrap)])
    for i, each in enumerate(bootstrap):
        if isinstance(each, NamedFile):
            for problem in file_problems(each, ()):
                yield replace(problem, at=("bootstrap", i, *problem.path))
    yield from repeated("policies", policies)
    yield from repeated("security_groups", groups)
    if own_groups + len(groups) > INTERFACE_GROUPS:
        message = (
            f"an interface has at most {INTERFACE_GROUPS} security groups, {own_groups} of which are the cluster's"
        )
        hint = f"keep {INTERFACE_GROUPS - own_groups}, or put their rules into fewer groups"
        yield Problem("security-groups-too-many", "security_groups", message, hint)


def file_problems(file: NamedFile, at: str | Path) -> Iterator[Problem]:
    """The first problem of a script in a file."""
    if re.match(r"s3://", file):
        message = f"{file} has neither version_id nor sha256, so nodes could run different contents"
        yield Problem("bootstrap-not-pinned", at, message, f"write {{s3: {file}, version_id: ..., sha256: ...}}")
    elif re.match(r"[a-z]+://", file):
        message = f"{file} is not a path: nodes download scripts from S3 only"
        yield Problem("bootstrap-source", at, message, "save the script beside this file, and name it")
    elif file.is_outside:
        message = f"{file} is outside the folder of the environment file"
        yield Problem(
            "bootstrap-outside-folder", at, message, "move the script into the folder, and give its path there"
        )
    else:
        yield from _content_problems(file, at)


def _content_problems(file: NamedFile, at: str | Path) -> Iterator[Problem]:
    try:
        content = _read(file)
        words = content.decode()
    except OSError as error:
        message = f"{file} cannot be read: {(error.strerror or str(error)).lower()}"
        yield Problem("bootstrap-unreadable", at, message, "check the path, which is relative to this file")
        return
    except ValueError as error:
        reason = f"byte {error.start + 1} is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
        hint = "save the script as UTF-8 text; download programs in it"
        yield Problem("bootstrap-unreadable", at, f"{file}: {reason}", hint)
        return
    if len(content) > MAXIMUM_BYTES:
        message = f"{file} is larger than {MAXIMUM_BYTES // 1024} KiB"
        yield Problem("bootstrap-too-large", at, message, "store the data in S3, and download them in the script")
    elif not words.strip():
        yield Problem("bootstrap-not-a-script", at, f"{file} is empty", "write the script, or remove the entry")
    elif "\r\n" in words:
        message = f"{file} has Windows line endings (CRLF), with which Linux does not run a script"
        yield Problem("bootstrap-not-a-script", at, message, f"convert it: sed -i 's/\\r$//' {file}")
    elif words.startswith("\ufeff"):
        message = f"{file} begins with a byte order mark, so Linux does not find #! and the program"
        yield Problem("bootstrap-not-a-script", at, message, f"remove it: sed -i '1s/^\\xef\\xbb\\xbf//' {file}")
    elif not words.startswith("#!/"):
        message = f"{file} does not begin with #! and the path of a program"
        yield Problem("bootstrap-not-a-script", at, message, "begin the script with #!/bin/bash")
    else:
        yield from _secrets(file, words, at)
        yield from _reboots(file, words, at)


def _secrets(file: NamedFile, words: str, at: str | Path) -> Iterator[Problem]:
    """The first secret. Its text is not repeated."""
    found = [(match.start(), kind) for kind, pattern in _SECRETS.items() if (match := pattern.search(words))]
    if found:
        start, kind = min(found)
        line = words.count("\n", 0, start) + 1
        message = f"line {line} of {file} contains {kind}, which everyone who can read the script could use"
        hint = "remove it, read the secret from AWS Secrets Manager in the script, and allow that in policies"
        yield Problem("bootstrap-secret", at, message, hint)


def _reboots(file: NamedFile, words: str, at: str | Path) -> Iterator[Problem]:
    """A lifecycle action of PCS must not reboot the node; on EKS a reboot ends the steps before the node may join.

    Source: AWS PCS User Guide, "Best practices for node lifecycle actions" (2026).
    """
    if found := stops_node(words):
        line, command = found
        message = (
            f"line {line} of {file} runs {command}; a node that a boot step restarts or stops does not join the cluster"
        )
        hint = "remove it, and bake what needs a reboot into an AMI"
        yield Problem("bootstrap-reboot", at, message, hint, "warning")


def _read(file: NamedFile) -> bytes:
    """Content of a regular file, at most a byte more than the maximum. Raises OSError, ValueError."""
    with open(file.path, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise ValueError("it is a pipe or a device")
        content = stream.read(MAXIMUM_BYTES + 1)
    if b"\0" in content:
        raise ValueError("it is a program, not a script")
    return content
