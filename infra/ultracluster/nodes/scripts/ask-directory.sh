#!/bin/bash
# Configures SSSD for the users of an Active Directory, and reads its secret again every hour, by a systemd timer.
# $1 is the secret, $2 the Region; then domain=, uri=, ids=sid|posix, group=, sudo=, passwords=yes|no, in any order.
set -euo pipefail
mkdir -p /usr/local/sbin /etc/ssh/sshd_config.d /etc/sudoers.d
passwords=no sudo_groups=()
for argument in "${@:3}"; do
  case $argument in
    passwords=*) passwords=${argument#*=} ;;
    sudo=*) sudo_groups+=("${argument#*=}") ;;
  esac
done

if ! command -v sssd > /dev/null && [ ! -x /usr/sbin/sssd ]; then
  if command -v apt-get > /dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    for _ in $(seq 30); do
      # another apt may be at work while the node boots
      apt-get update --quiet && apt-get install --yes --quiet --no-install-recommends sssd-ldap libnss-sss libpam-sss && break
      sleep 10
    done
  else
    dnf install --assumeyes --quiet sssd-ldap sssd-client authselect oddjob-mkhomedir
  fi
fi
if command -v pam-auth-update > /dev/null; then
  pam-auth-update --package --enable mkhomedir
else
  authselect select sssd with-mkhomedir --force
  systemctl enable --now oddjobd.service
fi

cat > /usr/local/sbin/ask-directory <<'SCRIPT'
#!/usr/bin/python3
"""Writes the configuration of SSSD with what the secret says, and restarts SSSD if it changed."""
import json
import os
import subprocess
import sys

secret_id, region, *words = sys.argv[1:]
values = {}
for word in words:
    key, _, value = word.partition("=")
    values.setdefault(key, []).append(value)

command = ["aws", "secretsmanager", "get-secret-value", "--region", region, "--secret-id", secret_id]
answer = subprocess.run([*command, "--query", "SecretString", "--output", "text"], stdout=subprocess.PIPE, text=True)
if answer.returncode:
    sys.exit("the secret cannot be read")
try:
    secret = json.loads(answer.stdout)
    user, password = secret["username"], secret["password"]
except (ValueError, KeyError, TypeError):
    sys.exit("the secret is not JSON with the keys username and password")
if any("\n" in text for text in (user, password)):
    sys.exit("username or password of the secret has several lines")

domain = values["domain"][0]
base = ",".join(f"dc={part}" for part in domain.split("."))
settings = {
    "id_provider": "ldap",
    "auth_provider": "ldap",
    "chpass_provider": "none",
    "ldap_uri": ",".join(values["uri"]),
    "ldap_search_base": base,
    # neither simple nor permit refuses a disabled account, so that SSSD must not find it (userAccountControl, bit 2)
    "ldap_user_search_base": f"{base}?subtree?(!(userAccountControl:1.2.840.113556.1.4.803:=2))",
    "ldap_schema": "AD",
    "ldap_id_mapping": str(values["ids"] == ["sid"]),
    "ldap_default_bind_dn": user,
    "ldap_default_authtok_type": "password",
    "ldap_default_authtok": password,
    "ldap_tls_reqcert": "demand",
    "ldap_referrals": "False",
    "ldap_user_ssh_public_key": "altSecurityIdentities",
    "override_homedir": "/home/%u",
    "default_shell": "/bin/bash",
    "cache_credentials": "False",
    "access_provider": "simple" if "group" in values else "permit",
}
if "group" in values:
    settings["simple_allow_groups"] = ", ".join(values["group"])
folder = "/etc/sssd"
os.makedirs(folder, mode=0o711, exist_ok=True)
changed = False


def write(name, text):
    """Replaces a file that differs, readable by root only."""
    global changed
    path = f"{folder}/{name}"
    if os.path.exists(path) and open(path).read() == text:
        return
    with open(os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    os.replace(f"{path}.new", path)
    changed = True


if "ca_certificate" in secret:
    settings["ldap_tls_cacert"] = f"{folder}/directory-ca.pem"
    write("directory-ca.pem", secret["ca_certificate"].strip() + "\n")
lines = ["[sssd]", "services = nss, pam, ssh", f"domains = {domain}", "", f"[domain/{domain}]"]
write("sssd.conf", "\n".join([*lines, *(f"{key} = {value}" for key, value in settings.items()), ""]))
if changed:
    subprocess.run(["systemctl", "enable", "sssd.service"], check=True)
    subprocess.run(["systemctl", "restart", "sssd.service"], check=True)
SCRIPT
chmod 755 /usr/local/sbin/ask-directory

sudoers=$(mktemp)
for group in "${sudo_groups[@]}"; do
  echo "%${group// /\\ } ALL=(ALL) NOPASSWD:ALL"
done > "$sudoers"
chmod 440 "$sudoers"
visudo --check --quiet --file "$sudoers"
mv "$sudoers" /etc/sudoers.d/ultracluster-directory

# the first value that sshd reads is the one that it uses, and this file is read first
setting="AuthorizedKeysCommand /usr/bin/sss_ssh_authorizedkeys %u
AuthorizedKeysCommandUser nobody
PasswordAuthentication $passwords
KbdInteractiveAuthentication $passwords"
file=/etc/ssh/sshd_config.d/10-ultracluster-directory.conf
act=
if [ "$(cat "$file" 2> /dev/null)" != "$setting" ]; then
  echo "$setting" > "$file"
  act=try-reload-or-restart
fi
# EC2 Instance Connect starts sshd with an AuthorizedKeysCommand of its own, which wins over files and outlives a reload
for unit in ssh.service sshd.service; do
  dropin=$unit.d/ec2-instance-connect.conf
  if [ -e "/usr/lib/systemd/system/$dropin" ] && [ "$(readlink "/etc/systemd/system/$dropin")" != /dev/null ]; then
    mkdir -p "/etc/systemd/system/$unit.d"
    ln -sf /dev/null "/etc/systemd/system/$dropin"
    act=try-restart
  fi
done
if [ -n "$act" ]; then
  systemctl daemon-reload
  for unit in ssh.service sshd.service; do
    if systemctl cat "$unit" > /dev/null 2>&1; then
      systemctl "$act" "$unit"
      break
    fi
  done
fi

{
  printf '[Unit]\nDescription=Users of the directory\nWants=network-online.target\nAfter=network-online.target\n\n'
  printf '[Service]\nType=oneshot\nLogLevelMax=warning\nExecStart=/usr/local/sbin/ask-directory'
  for argument in "$@"; do
    # systemd expands % and $ in a command line
    argument=${argument//%/%%}
    printf ' "%s"' "${argument//\$/\$\$}"
  done
  printf '\n'
} > /etc/systemd/system/ask-directory.service
cat > /etc/systemd/system/ask-directory.timer <<'UNIT'
[Unit]
Description=Users of the directory

[Timer]
OnActiveSec=1h
OnUnitInactiveSec=1h
RandomizedDelaySec=5min

[Install]
WantedBy=timers.target
UNIT
systemctl daemon-reload
systemctl enable ask-directory.timer
systemctl start ask-directory.timer
for attempt in 1 2 3 4 5 6; do
  /usr/local/sbin/ask-directory "$@" && break
  [ "$attempt" != 6 ] || exit 1
  sleep 10
done
