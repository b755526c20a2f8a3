"""The step that asks a directory, with the real sshd, visudo, pam-auth-update and systemd of Debian; SSSD is a stub."""

import configparser
import json

import pytest

from tests.engines.debian import WORKING
from ultracluster.config.directory import Directory
from ultracluster.nodes.users import DirectorySource, user_steps

SECRET = {"username": "CN=Reader,OU=Users,DC=corp,DC=example,DC=com", "password": "p%a$s s"}
AUTHORITY = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"
CONFIGURATION = "/etc/sssd/sssd.conf"


def step(**changes):
    settings = {
        "type": "ad",
        "domain": "corp.example.com",
        "ldap_urls": ("ldaps://dc1.corp.example.com", "ldaps://dc2.corp.example.com:636"),
        "secret_arn": "arn:aws:secretsmanager:us-east-2:111122223333:secret:directory-a1b2c3",
        "groups": ("cluster users", "ml"),
        "sudo_groups": ("Domain Admins",),
    }
    (found,) = user_steps(DirectorySource(Directory(**{**settings, **changes}), "us-east-2"))
    return found


@pytest.fixture
def machine(debian):
    stubs = dict.fromkeys(("apt-get", "sleep"), "")
    debian.stub({**stubs, "systemctl": WORKING["systemctl"], "aws": "cat /secret"})
    publish(debian)
    return debian


def publish(machine, **changes):
    machine.write("/secret", json.dumps({**SECRET, **changes}))


def configuration(machine):
    """The section of the domain."""
    parser = configparser.RawConfigParser()
    parser.read_string(machine.read(CONFIGURATION))
    assert parser["sssd"] == {"services": "nss, pam, ssh", "domains": "corp.example.com"}
    return dict(parser["domain/corp.example.com"])


def test_sssd_asks_the_directory_over_tls_with_the_user_of_the_secret(machine):
    machine.boot([step()])
    found = configuration(machine)
    assert found["ldap_uri"] == "ldaps://dc1.corp.example.com,ldaps://dc2.corp.example.com:636"
    assert (found["ldap_default_bind_dn"], found["ldap_default_authtok"]) == (SECRET["username"], SECRET["password"])
    assert (found["ldap_search_base"], found["ldap_tls_reqcert"]) == ("dc=corp,dc=example,dc=com", "demand")
    assert (found["access_provider"], found["simple_allow_groups"]) == ("simple", "cluster users, ml")
    assert (found["ldap_id_mapping"], found["override_homedir"]) == ("True", "/home/%u")
    assert machine.run("stat", "--format", "%a %U", CONFIGURATION).stdout == "600 root\n"
    assert (
        "apt-get install --yes --quiet --no-install-recommends sssd-ldap libnss-sss libpam-sss"
        in machine.stubs_called()
    )


@pytest.mark.parametrize(("ids", "mapped"), [("sid", "True"), ("posix", "False")])
def test_ids_are_computed_or_read(machine, ids, mapped):
    machine.boot([step(id_mapping=ids, groups=())])
    assert configuration(machine)["ldap_id_mapping"] == mapped
    assert configuration(machine)["access_provider"] == "permit"


def test_the_certificates_of_a_private_authority_are_those_of_the_secret(machine):
    publish(machine, ca_certificate=AUTHORITY)
    machine.boot([step()])
    assert machine.read(configuration(machine)["ldap_tls_cacert"]) == f"{AUTHORITY}\n"


def test_a_changed_password_arrives_and_restarts_sssd_once(machine):
    machine.boot([step()])
    again = ("/usr/local/sbin/ask-directory", *step().arguments)
    assert machine.run(*again).returncode == 0
    assert machine.stubs_called().count("systemctl restart sssd.service") == 1
    publish(machine, password="rotated")  # noqa: S106
    assert machine.run(*again).returncode == 0
    assert configuration(machine)["ldap_default_authtok"] == "rotated"
    assert machine.stubs_called().count("systemctl restart sssd.service") == 2


@pytest.mark.parametrize(
    ("secret", "reason"),
    [
        ("not JSON", "the secret is not JSON with the keys username and password"),
        ('{"username": "reader"}', "the secret is not JSON with the keys username and password"),
        ('{"username": "reader", "password": "one\\ntwo"}', "has several lines"),
    ],
)
def test_a_wrong_secret_fails_and_is_not_quoted(machine, secret, reason):
    machine.write("/secret", secret)
    machine.write("/step.sh", step().script.text)
    ran = machine.run("bash", "/step.sh", *step().arguments)
    assert ran.returncode != 0
    assert reason in ran.stderr
    assert "two" not in ran.stderr


@pytest.mark.parametrize(("login", "passwords"), [("keys", "no"), ("keys_or_passwords", "yes")])
def test_sshd_asks_sssd_for_keys(machine, login, passwords):
    machine.boot([step(login=login)])
    shown = (
        machine.run("bash", "-c", "mkdir -p /run/sshd; ssh-keygen -A > /dev/null; sshd -T").stdout.lower().splitlines()
    )
    assert "authorizedkeyscommand /usr/bin/sss_ssh_authorizedkeys %u" in shown
    assert f"passwordauthentication {passwords}" in shown


INSTANCE_CONNECT = """[Service]
ExecStart=
ExecStart=/usr/sbin/sshd -D -o "AuthorizedKeysCommand /usr/share/ec2-instance-connect/eic_run_authorized_keys %%u %%f"
"""
"""The drop-in of the package ec2-instance-connect of Ubuntu, shortened."""


@pytest.mark.parametrize("unit", ["ssh.service", "sshd.service"])
def test_sshd_asks_sssd_and_not_ec2_instance_connect(machine, unit):
    machine.write(f"/usr/lib/systemd/system/{unit}.d/ec2-instance-connect.conf", INSTANCE_CONNECT)
    machine.run("ln", "--symbolic", "ssh.service", "/usr/lib/systemd/system/sshd.service")  # Debian enables the alias
    machine.boot([step()])
    mask = f"/etc/systemd/system/{unit}.d/ec2-instance-connect.conf"
    assert machine.run("readlink", mask).stdout == "/dev/null\n"
    # what systemd itself makes of the files
    shown = machine.run("systemd-analyze", "cat-config", f"systemd/system/{unit}").stdout
    assert "ExecStart=/usr/sbin/sshd" in shown
    assert "eic_run_authorized_keys" not in shown
    calls = machine.stubs_called()
    assert calls.index("systemctl daemon-reload") < calls.index("systemctl try-restart ssh.service")
    assert "systemctl try-reload-or-restart ssh.service" not in calls
    machine.boot([step()])
    assert machine.stubs_called().count("systemctl try-restart ssh.service") == 1


def test_sshd_is_only_reloaded_without_ec2_instance_connect(machine):
    machine.boot([step()])
    assert "systemctl try-reload-or-restart ssh.service" in machine.stubs_called()
    assert not machine.exists("/etc/systemd/system/ssh.service.d")


@pytest.mark.parametrize("groups", [("ml",), ()])
def test_a_disabled_account_is_not_found(machine, groups):
    """A key opens a session without a bind of the user, so that the directory itself refuses nothing."""
    machine.boot([step(groups=groups)])
    base, scope, condition = configuration(machine)["ldap_user_search_base"].split("?")
    assert (base, scope) == ("dc=corp,dc=example,dc=com", "subtree")
    # ACCOUNTDISABLE is bit 2 of userAccountControl; the rule is bitwise AND
    assert condition == "(!(userAccountControl:1.2.840.113556.1.4.803:=2))"


def test_groups_with_sudo_are_in_a_valid_file(machine):
    machine.boot([step()])
    assert machine.run("visudo", "--check", "--quiet").returncode == 0
    assert machine.read("/etc/sudoers.d/ultracluster-directory") == "%Domain\\ Admins ALL=(ALL) NOPASSWD:ALL\n"


def test_systemd_reads_the_units_and_they_have_no_secret(machine):
    machine.boot([step()])
    units = [f"/etc/systemd/system/ask-directory.{kind}" for kind in ("service", "timer")]
    checked = machine.run("systemd-analyze", "verify", "--man=no", *units)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    assert SECRET["password"] not in "".join(map(machine.read, units))
    assert not [line for line in machine.stubs_called() if SECRET["password"] in line]


def test_homes_are_created_at_the_first_login(machine):
    machine.boot([step()])
    assert "pam_mkhomedir.so" in machine.read("/etc/pam.d/common-session")
