"""A real kernel, nft and sshd keep users of a PCS node from its role; instance metadata is another namespace."""

import pytest

from tests.engines.test_users import SERVE
from ultracluster.nodes.steps import Step

ROLE = "arn:aws:iam::111122223333:role/jobs"
COMPUTE = Step("separate-users", ("compute", ROLE, "us-east-2"))

NETWORK = """
set -e
ip netns add aws; ip netns add container
ip link add veth0 type veth peer name veth1 netns aws
ip link add docker0 type veth peer name eth0 netns container
ip address add 10.0.1.1/24 dev veth0; ip address add fd00:1::1/64 dev veth0 nodad; ip link set veth0 up
ip address add 172.17.0.1/16 dev docker0; ip address add fd00:2::1/64 dev docker0 nodad; ip link set docker0 up
ip -n aws link set lo up; ip -n aws link set veth1 up
ip -n aws address add 10.0.1.2/24 dev veth1; ip -n aws address add 169.254.169.254/32 dev veth1
ip -n aws address add fd00:1::2/64 dev veth1 nodad; ip -n aws address add fd00:ec2::254/128 dev veth1 nodad
ip -n aws route add default via 10.0.1.1; ip -n aws -6 route add default via fd00:1::1
ip -n container link set eth0 up; ip -n container address add 172.17.0.2/16 dev eth0
ip -n container address add fd00:2::2/64 dev eth0 nodad
ip -n container route add default via 172.17.0.1; ip -n container -6 route add default via fd00:2::1
ip route add 169.254.169.254 dev veth0; ip -6 route add fd00:ec2::254 via fd00:1::2
echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
ip netns exec aws python3 -c '
import http.server, socket
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
Server(("::", 80), http.server.SimpleHTTPRequestHandler).serve_forever()' > /dev/null 2>&1 &
cat > /probe.py <<'PROBE'
import socket, sys
name, *device = sys.argv[1:]
reached = ""
for family, address in ((socket.AF_INET, "169.254.169.254"), (socket.AF_INET6, "fd00:ec2::254")):
    with socket.socket(family) as client:
        client.settimeout(20)
        if device:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device[0].encode())
        try:
            client.connect((address, 80))
            reached += " yes"
        except OSError:
            reached += " no"
print(name + reached, flush=True)
PROBE
until ip netns exec aws bash -c ': < /dev/tcp/::1/80' 2> /dev/null; do sleep 0.1; done
as() { setpriv --reuid="$1" --regid=nogroup --clear-groups "${@:2}"; }
"""
"""Instance metadata beyond veth0, and a container whose packets this machine forwards."""

PROBES = """
python3 /probe.py root
as ultracluster-metrics python3 /probe.py agent
as nobody python3 /probe.py nobody
as 10001 python3 /probe.py user
as 10001 python3 /probe.py bound veth0
as 10001 unshare --user --map-root-user python3 /probe.py namespace
ip netns exec container python3 /probe.py container
"""


@pytest.fixture
def node(debian):
    debian.stub({"systemctl": ""})
    debian.boot([COMPUTE])
    return debian


def run(debian, script):
    debian.write("/run.sh", NETWORK + script)
    ran = debian.run("bash", "/run.sh")
    return ran.stdout.splitlines(), ran.stderr


def test_only_root_and_agents_reach_instance_metadata(node):
    said, errors = run(node, f"{PROBES}nft --file /etc/ultracluster/users.nft\n{PROBES}")
    names = ["root", "agent", "nobody", "user", "bound", "namespace", "container"]
    assert said[:7] == [f"{name} yes yes" for name in names], errors
    assert said[7:] == ["root yes yes", "agent yes yes", *(f"{name} no no" for name in names[2:])], errors


def test_the_rules_are_loaded_again_without_a_second_table(node):
    said, errors = run(node, "for _ in 1 2; do nft --file /etc/ultracluster/users.nft; done; nft list tables")
    assert said == ["table inet ultracluster"], errors


LISTEN = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("bound", flush=True)
while True:
    client, _ = server.accept()
    client.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n")
"""


@pytest.mark.parametrize(("user", "answer"), [("ultracluster-metrics", "HTTP"), ("10001", "")])
def test_who_takes_the_port_of_an_exporter_before_it_starts_answers_nobody(node, user, answer):
    node.write("/listen.py", LISTEN)
    said, errors = run(
        node,
        f"""
nft --file /etc/ultracluster/users.nft
for port in 9090 9100 9101 9400; do
  mkfifo /tmp/ready$port
  as {user} python3 /listen.py $port > /tmp/ready$port & read -r < /tmp/ready$port
  python3 -c '
import socket, sys
try:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=3) as client:
        print(client.recv(4).decode())
except OSError:
    print()' $port
done
""",
    )
    assert said == [answer] * 4, errors


def test_only_those_who_may_become_root_log_in_to_a_compute_node_over_ssh(node):
    said, errors = run(
        node,
        f"""
set +e
echo 'ada ALL=(ALL) NOPASSWD:ALL' > /etc/sudoers.d/ada
for name in ada bob; do
  useradd --create-home --shell /bin/bash "$name"
  mkdir -p /home/$name/.ssh; ssh-keygen -q -t ed25519 -N '' -f /$name.key
  cp /$name.key.pub /home/$name/.ssh/authorized_keys; chown -R $name: /home/$name
done
{SERVE}
for name in ada bob; do
  ssh -q -i /$name.key -p 2222 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes \\
    $name@127.0.0.1 'echo in as $(id -un)' < /dev/null || echo "$name stays out"
done
kill $(cat /run/sshd.pid)
""",
    )
    assert said == ["in as ada", "bob stays out"], errors


def test_systemd_starts_neither_sshd_nor_slurmd_without_the_rules(node):
    unit = node.read("/etc/systemd/system/separate-users.service")
    assert "RequiredBy=ssh.service sshd.service slurmd.service" in unit
    assert {"ssh.service", "sshd.service", "slurmd.service"} <= set(unit.split("Before=")[1].split("\n")[0].split())
    names = [f"/etc/systemd/system/{name}.service" for name in ("separate-users", "serve-credentials")]
    checked = node.run("systemd-analyze", "verify", "--man=no", *names)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
