"""The step that creates users, with the real useradd, gpasswd, visudo, sudo and sshd of Debian."""

import hashlib

import pytest

from tests.engines.debian import WORKING
from ultracluster.config.users import Group, User, Users
from ultracluster.nodes.steps import Step
from ultracluster.nodes.users import UserSource, list_parts, user_list, user_steps

AWS = """
echo "$AWS_RETRY_MODE $AWS_MAX_ATTEMPTS" >> /retries
case $2 in
  get-parameter)
    while [ "$1" != --name ]; do shift; done
    cat "/parameters/$2.head"
    ;;
  get-parameters)
    while [ "$1" != --names ]; do shift; done
    names=()
    while shift; [ "${1:0:1}" = / ]; do names+=("$1"); done
    [ "${#names[@]}" -le 10 ] || { echo "Member must have length less than or equal to 10" >&2; exit 254; }
    python3 - "${names[@]}" <<'PYTHON'
import json, os, sys
names = sorted(sys.argv[1:], reverse=True)
there = {name: os.path.exists(f"/parameters{name}") for name in names}
parameters = [{"Name": n, "Value": open(f"/parameters{n}").read()[:-1]} for n in names if there[n]]
print(json.dumps({"Parameters": parameters, "InvalidParameters": [n for n in names if not there[n]]}))
PYTHON
    ;;
esac
"""
"""An AWS CLI that answers from the folder of parameters: in any order, and leaving out those that there are not."""

SOURCE = UserSource("/ultracluster/test/users", "us-east-2")
(LOCAL,) = user_steps(SOURCE)
PROGRAM = ("/usr/local/sbin/create-users", *LOCAL.arguments)
SERVE = """
mkdir -p /run/sshd
ssh-keygen -A > /dev/null
/usr/sbin/sshd -p 2222 -E /sshd.log
for _ in $(seq 1000); do (: < /dev/tcp/127.0.0.1/2222) 2> /dev/null && break; sleep 0.1; done
"""


@pytest.fixture
def machine(debian):
    """A machine with the AWS CLI, and a key pair of each of two people."""
    debian.stub({name: body for name, body in WORKING.items() if name in ("systemctl", "mountpoint")} | {"aws": AWS})
    for name in ("ada", "bob"):
        made = debian.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{name}@laptop", "-f", f"/{name}.key")
        assert made.returncode == 0, made.stderr
    return debian


def person(machine, name="ada", uid=10001, **more):
    return User(name=name, uid=uid, keys=(machine.read(f"/{name}.key.pub").strip(),), **more)


def publish(machine, *users, groups=(), checksum=None):
    text = user_list(Users(users=users, groups=groups))
    parts = list_parts(text)
    for i, part in enumerate(parts, start=1):
        machine.write(f"/parameters{SOURCE.parameter}/{i}", f"{part}\n")
    checksum = checksum or hashlib.sha256(text.encode()).hexdigest()
    machine.write(f"/parameters{SOURCE.parameter}.head", f"{len(parts)} {checksum}\n")
    return len(parts)


def again(machine):
    """What the timer does."""
    return machine.run(*PROGRAM)


def shell(machine, command):
    ran = machine.run("bash", "-c", command)
    return ran.stdout.strip()


def login(machine, name, key=None, command="id -u"):
    """Standard output of a command over SSH, or None when sshd refuses the key."""
    options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes -o LogLevel=ERROR -p 2222"
    ssh = f"ssh -i /{key or name}.key {options} {name}@127.0.0.1 {command!r}"
    ran = machine.run("bash", "-c", f"{SERVE}\n{ssh}; code=$?; pkill sshd; exit $code")
    return None if ran.returncode == 255 else ran.stdout.strip()


def test_a_user_logs_in_with_a_key_and_has_a_home(machine):
    publish(machine, person(machine))
    machine.boot([LOCAL])
    assert shell(machine, "getent passwd ada") == "ada:x:10001:10001::/home/ada:/bin/bash"
    assert shell(machine, "stat --format '%U:%G %a' /home/ada") == "ada:ada 700"
    assert shell(machine, "ls -A /home") == "ada"
    assert login(machine, "ada") == "10001"
    assert login(machine, "ada", key="bob") is None
    assert login(machine, "root", key="ada") is None


def test_sudo_is_for_those_who_have_it(machine):
    publish(machine, person(machine, sudo=True), person(machine, "bob", 10002))
    machine.boot([LOCAL])
    assert login(machine, "ada", command="sudo id -u") == "0"
    assert login(machine, "bob", command="sudo --non-interactive id -u || echo refused") == "refused"
    assert shell(machine, "visudo --check --quiet && echo valid") == "valid"


def test_a_list_of_several_parts_is_whole(machine):
    key = machine.read("/ada.key.pub").strip()
    people = [User(name=f"person{i}", uid=10001 + i, keys=(key,)) for i in range(40)]
    assert publish(machine, *people) > 1
    machine.boot([LOCAL])
    assert shell(machine, "getent passwd | grep -c ^person") == "40"


def test_a_long_list_takes_a_call_for_ten_parts(machine):
    key = machine.read("/ada.key.pub").strip()
    comment = "c" * 1900
    people = [User(name=f"person{i}", uid=10001 + i, keys=(f"{key} {comment}",)) for i in range(22)]
    parts = publish(machine, *people)
    assert 10 < parts <= 20
    machine.boot([LOCAL])
    assert shell(machine, "getent passwd | grep -c ^person") == "22"
    asked = [call for call in machine.stubs_called() if call.startswith("aws ")]
    assert [call.split()[2] for call in asked] == ["get-parameter", "get-parameters", "get-parameters"]
    # hundreds of nodes ask at the same time, and Systems Manager throttles them
    assert set(machine.read("/retries").splitlines()) == {"standard 10"}


def test_a_missing_part_fails_the_first_boot(machine):
    machine.stub({"sleep": ""})
    key = machine.read("/ada.key.pub").strip()
    people = [User(name=f"person{i}", uid=10001 + i, keys=(key,)) for i in range(80)]
    assert publish(machine, *people) > 2
    (machine.upper / f"parameters{SOURCE.parameter}/2").unlink()
    machine.write("/step.sh", LOCAL.script.text)
    ran = machine.run("bash", "/step.sh", *LOCAL.arguments)
    assert ran.returncode != 0
    assert f"there is no parameter {SOURCE.parameter}/2" in ran.stderr
    assert shell(machine, "getent passwd person0") == ""


def test_groups_have_their_members_and_ids(machine):
    research = Group(name="research", gid=20000)
    ada, bob = person(machine, gid=20000), person(machine, "bob", 10002, groups=("research",))
    publish(machine, ada, bob, groups=(research,))
    machine.boot([LOCAL])
    assert shell(machine, "id -gn ada; id -Gn bob") == "research\nbob research"
    publish(machine, ada, person(machine, "bob", 10002), groups=(research,))
    assert again(machine).returncode == 0
    assert shell(machine, "id -Gn bob; getent group research") == "bob\nresearch:x:20000:"


def test_a_change_of_the_list_changes_the_machine_later(machine):
    publish(machine, person(machine, sudo=True))
    machine.boot([LOCAL])
    publish(machine, person(machine, "bob", 10002))
    assert again(machine).returncode == 0
    # files and jobs of ada stay; her account opens no more, nor with a key that she kept in her home
    machine.run(
        "bash",
        "-c",
        "mkdir /home/ada/.ssh; cp /ada.key.pub /home/ada/.ssh/authorized_keys; chown -R ada: /home/ada/.ssh",
    )
    assert (login(machine, "ada"), login(machine, "bob")) == (None, "10002")
    assert shell(machine, "stat --format %U /home/ada; cat /etc/sudoers.d/ultracluster-users") == "ada"
    publish(machine, person(machine), person(machine, "bob", 10002))
    assert again(machine).returncode == 0
    assert login(machine, "ada") == "10001"


def test_the_same_list_again_does_nothing(machine):
    publish(machine, person(machine))
    machine.boot([LOCAL])
    machine.run("bash", "-c", "touch /home/ada/work; echo changed > /etc/ssh/authorized_keys.d/ada")
    machine.boot([LOCAL])
    assert machine.read("/etc/ssh/authorized_keys.d/ada") == "changed\n"
    assert sum("users/1" in line for line in machine.stubs_called()) == 1
    assert machine.stubs_called().count("systemctl try-reload-or-restart ssh.service") == 1


def test_an_unreadable_list_keeps_the_users_that_there_are(machine):
    machine.stub({"sleep": ""})
    publish(machine, person(machine))
    machine.boot([LOCAL])
    publish(machine, person(machine, "bob", 10002), checksum="0" * 64)
    ran = again(machine)
    assert (ran.returncode, "the list of users cannot be read" in ran.stderr) == (0, True)
    assert shell(machine, "getent passwd bob") == ""
    assert shell(machine, "getent passwd ada") != ""


def test_a_first_boot_without_a_list_fails(machine):
    machine.stub({"sleep": "", "aws": "exit 1"})
    machine.write("/step.sh", LOCAL.script.text)
    assert machine.run("bash", "/step.sh", *LOCAL.arguments).returncode != 0


@pytest.mark.parametrize("taken", ["useradd --uid 10001 somebody", "useradd --uid 10007 ada"])
def test_a_conflict_is_reported_and_leaves_the_others(machine, taken):
    machine.run("bash", "-c", taken)
    publish(machine, person(machine), person(machine, "bob", 10002))
    machine.write("/step.sh", LOCAL.script.text)
    ran = machine.run("bash", "/step.sh", *LOCAL.arguments)
    assert ran.returncode != 0
    assert "the user ada" in ran.stderr
    assert login(machine, "bob") == "10002"
    assert shell(machine, "id -u somebody 2> /dev/null || id -u ada") == taken.split()[2]


def test_the_user_of_session_manager_takes_no_uid_of_the_list(machine):
    """The agent runs `useradd -m ssm-user` at the first session, which takes the next free uid."""
    publish(machine, person(machine))
    machine.boot([LOCAL])
    assert int(shell(machine, "id -u ssm-user")) < 1000
    assert "(ALL) NOPASSWD: ALL" in shell(machine, "sudo -l -U ssm-user")


def test_homes_wait_for_their_file_system(machine):
    machine.stub({"mountpoint": "test -e /mounted"})
    publish(machine, person(machine))
    shared = Step(LOCAL.name, (*LOCAL.arguments[:2], "shared"), "every_boot")
    machine.write("/step.sh", shared.script.text)
    ran = machine.run("bash", "/step.sh", *shared.arguments)
    assert (ran.returncode != 0, "/home is not mounted" in ran.stderr) == (True, True)
    assert shell(machine, "ls -A /home") == ""
    machine.write("/mounted", "")
    machine.boot([shared])
    assert shell(machine, "ls -A /home") == "ada"


def test_nodes_that_share_homes_create_each_once(machine):
    """Eight nodes at the same time, as processes with one /home: all have their copy before one gives it its name."""
    publish(machine, person(machine))
    machine.boot([LOCAL])
    race = """
rm -r /home/ada
for n in $(seq 8); do
  ( for f in applied lock; do rm -f /var/lib/ultracluster/users/$f; done
    sed "s#^state=.*#state=/tmp/node$n#; s#/etc/ssh/authorized_keys.d#/tmp/keys$n#g; s#/etc/sudoers.d#/tmp/keys$n#g
      s#^    mv #    sleep 1; &#" \
      /usr/local/sbin/create-users > /tmp/node$n.sh
    mkdir -p /tmp/keys$n
    bash /tmp/node$n.sh "$@" || echo failed ) &
done
wait
ls -A /home
diff <(ls -A /home/ada) <(ls -A /etc/skel)
stat --format '%U %a' /home/ada /home/ada/.bashrc
"""
    ran = machine.run("bash", "-c", race, "race", *LOCAL.arguments)
    assert ran.stdout.split() == ["ada", "ada", "700", "ada", "644"], ran.stderr


def test_systemd_reads_the_units(machine):
    publish(machine, person(machine))
    machine.boot([LOCAL])
    units = [f"/etc/systemd/system/create-users.{kind}" for kind in ("service", "timer")]
    checked = machine.run("systemd-analyze", "verify", "--man=no", *units)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
