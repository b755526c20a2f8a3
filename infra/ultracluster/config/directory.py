"""Users from an existing Active Directory, which machines ask by SSSD: AWS Managed Microsoft AD, or one of your own.

Nothing is joined to the domain: machines bind as a user who may read, over LDAPS. The user and the password are in
Secrets Manager and nowhere else.

Source: sssd-ldap(5), sssd-simple(5) (SSSD 2.9); AWS ParallelCluster User Guide, "DirectoryService section"; AWS
Directory Service Administration Guide, "Enable secure LDAP (LDAPS)" (2026).
"""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config import effect_rules as rules
from ultracluster.config.fields import KeyArn, Many, cdk_value, text
from ultracluster.config.problems import Problem, repeated, rule
from ultracluster.config.settings import Settings

Domain = Annotated[
    str,
    text(r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$", "a domain such as corp.example.com", max_length=100),
]
LdapsUrl = Annotated[
    str,
    text(
        r"^ldaps://([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}(:\d{1,5})?$",
        "the LDAPS URL of a host by name, such as ldaps://dc1.corp.example.com",
        max_length=200,
    ),
]
"""By name, since a certificate names its host; encrypted, since SSSD sends passwords."""

GroupName = Annotated[
    str,
    text(r"^[A-Za-z0-9]([A-Za-z0-9 ._-]{0,62}[A-Za-z0-9._-])?$", "the name of a group of the directory"),
]
SecretArn = Annotated[
    str,
    text(
        r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[A-Za-z0-9/_+=.@-]{1,160}-[A-Za-z0-9]{6}$",
        "the whole ARN of a secret such as arn:aws:secretsmanager:us-east-2:111122223333:secret:directory-a1b2c3",
    ),
    cdk_value(),
]


class Directory(Settings):
    """An existing Active Directory whose users log in to the machines, with the same ids on each."""

    type: Annotated[Literal["ad"], rules.DIRECTORY]
    """Kind of directory: Active Directory."""
    domain: Annotated[Domain, rules.DIRECTORY]
    """Domain of the users, in lower case."""
    ldap_urls: Annotated[Many[LdapsUrl], Field(min_length=1, max_length=3), rules.DIRECTORY]
    """LDAPS URLs of domain controllers, in order of preference."""
    secret_arn: Annotated[SecretArn, rules.DIRECTORY]
    """Secret with the keys username, a distinguished name that may read the directory, password, and ca_certificate,
    the PEM certificates of a private authority. The role of the machines reads it, so every user of a machine can
    learn the password: use a bind user that can only read."""
    secret_key_arn: Annotated[KeyArn | None, rules.DIRECTORY] = None
    """KMS key of the secret, unless it is aws/secretsmanager."""
    id_mapping: Annotated[Literal["sid", "posix"], rules.DIRECTORY] = "sid"
    """Where ids come from: sid computes them from the SID of users and groups, posix reads uidNumber and gidNumber."""
    groups: Annotated[Many[GroupName], Field(max_length=6), rules.DIRECTORY] = ()
    """Groups whose members may log in. None: every user of the directory."""
    sudo_groups: Annotated[Many[GroupName], Field(max_length=4), rules.DIRECTORY] = ()
    """Groups whose members may become root on every machine, without a password."""
    login: Annotated[Literal["keys", "keys_or_passwords"], rules.DIRECTORY] = "keys"
    """What opens an SSH session: public keys in the attribute altSecurityIdentities, or passwords of the directory
    too."""

    @rule
    def _distinct_entries(self) -> Iterator[Problem]:
        for key in ("ldap_urls", "groups", "sudo_groups"):
            yield from repeated(key, getattr(self, key))

    @rule
    def _somebody_is_meant(self) -> Iterator[Problem]:
        if not self.groups:
            message = f"every user of {self.domain} may log in to the machines"
            yield Problem(
                "directory-open", "groups", message, "set groups to those whose members may log in", "warning"
            )
