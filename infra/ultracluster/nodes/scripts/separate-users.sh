#!/bin/bash
# Keeps users of a $1 node from the role of the node: only root and system users of agents reach instance metadata, and jobs
# get credentials of the role $2 in Region $3. On compute nodes only users who may become root log in over SSH.
# Without $2 instance metadata stays open to all.
set -euo pipefail
kind=$1 role=${2:-} region=${3:-}
mkdir -p /etc/ultracluster /opt/ultracluster /etc/ssh/sshd_config.d

if [ "$kind" = compute ]; then
  cat > /usr/local/sbin/is-administrator <<'SCRIPT'
#!/bin/bash
# Whether the user of the session may become root. Others reach a compute node through Slurm, which limits what they use.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec sudo --non-interactive --list --other-user="$PAM_USER" /bin/sh > /dev/null 2>&1
SCRIPT
  chmod 755 /usr/local/sbin/is-administrator
  rule='account required pam_exec.so quiet /usr/local/sbin/is-administrator'
  grep -qxF "$rule" /etc/pam.d/sshd || sed -i "1i $rule" /etc/pam.d/sshd
  # the first value that sshd reads is the one that it uses
  echo 'UsePAM yes' > /etc/ssh/sshd_config.d/05-ultracluster.conf
  for unit in ssh.service sshd.service; do
    systemctl try-reload-or-restart "$unit" 2> /dev/null || true
  done
fi
[ -n "$role" ] || exit 0

# PCS goes on with a login node on which a step failed: pam_nologin then lets in nobody but root
trap '[ "$?" = 0 ] || echo "this node does not keep users from instance metadata" > /etc/nologin' EXIT
if ! command -v nft > /dev/null; then
  if command -v apt-get > /dev/null; then
    # another apt may be at work while the node boots
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install --yes --quiet nftables
  else
    dnf install --assumeyes --quiet nftables
  fi
fi
id ultracluster-metrics > /dev/null 2>&1 ||
  useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin ultracluster-metrics
agents=0
for user in ultracluster-metrics cwagent ec2-instance-connect; do
  agents+=", $(id -u "$user" 2> /dev/null)" || agents=${agents%, }
done
# by owner of the socket: a route would not stop a socket that is bound to a device. Exporters: who takes the port of one before
# it starts answers nobody.
cat > /etc/ultracluster/users.nft <<RULES
table inet ultracluster
delete table inet ultracluster
table inet ultracluster {
  chain output {
    type filter hook output priority -10; policy accept;
    ip daddr 169.254.169.254 meta skuid != { $agents } reject
    ip6 daddr fd00:ec2::254 meta skuid != { $agents } reject
    oif lo tcp sport { 9090, 9100, 9101, 9400 } meta skuid != { $agents } drop
  }
  chain forward {
    type filter hook forward priority -10; policy accept;
    ip daddr 169.254.169.254 reject
    ip6 daddr fd00:ec2::254 reject
  }
}
RULES
cat > /etc/systemd/system/separate-users.service <<'UNIT'
[Unit]
Description=Keeps users from instance metadata
DefaultDependencies=no
After=local-fs.target nftables.service
Before=network-pre.target ssh.service sshd.service slurmd.service docker.service shutdown.target
Wants=network-pre.target
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft --file /etc/ultracluster/users.nft

[Install]
WantedBy=multi-user.target
RequiredBy=ssh.service sshd.service slurmd.service
UNIT

cat > /opt/ultracluster/serve-credentials <<'SCRIPT'
"""Serves credentials of the role of argument 1 in Region 2 to all users of the node 3, on loopback, at port 4 below 1024.

SDKs ask for them as AWS_CONTAINER_CREDENTIALS_FULL_URI says, and again before they expire. They are renewed at half of their
life; where that fails, those before serve until they expire.
"""

import json
import subprocess
import sys
import threading
import time
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

role, region, node, port = sys.argv[1:]
lock = threading.Lock()
found, renewal, end = {}, 0.0, 0.0


def renew():
    """Assumes the role with that of the node."""
    global found, renewal, end
    command = ["aws", "sts", "assume-role", "--role-arn", role, "--role-session-name", node, "--region", region]
    ran = subprocess.run([*command, "--output", "json"], capture_output=True, check=True, timeout=30)
    found = json.loads(ran.stdout)["Credentials"]
    end = datetime.fromisoformat(found["Expiration"].replace("Z", "+00:00")).timestamp()
    renewal = (time.time() + end) / 2


def credentials():
    """Answer to an SDK: status and content."""
    global renewal
    with lock:
        if time.time() > renewal:
            try:
                renew()
            except (OSError, ValueError, KeyError, subprocess.SubprocessError) as problem:
                print(getattr(problem, "stderr", None) or problem, file=sys.stderr, flush=True)
                renewal = time.time() + 10
        if time.time() > end:
            return 503, {"message": "the role cannot be assumed: see journalctl -u serve-credentials"}
        keys = {key: found[key] for key in ("AccessKeyId", "SecretAccessKey", "Expiration")}
        return 200, {**keys, "Token": found["SessionToken"], "RoleArn": role}


class Handler(BaseHTTPRequestHandler):
    """Answers GET /credentials."""

    timeout = 5

    def do_GET(self):
        status, content = credentials() if self.path == "/credentials" else (404, {})
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Says nothing."""


ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()
SCRIPT
cat > /etc/systemd/system/serve-credentials.service <<UNIT
[Unit]
Description=Credentials of the role of jobs
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Environment=AWS_STS_REGIONAL_ENDPOINTS=regional
ExecStart=/usr/bin/python3 -IS /opt/ultracluster/serve-credentials $role $region $PCS_NODE_ID 470
MemoryMax=512M
TasksMax=512
Restart=always
RestartSec=2s

[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable separate-users.service serve-credentials.service
systemctl start separate-users.service serve-credentials.service
