#!/bin/bash
# Sets up Lustre over EFA with AWS's client package $1, unless the image did. $2 is the systemd unit of the package,
# which configures the client at each boot; only its state tells whether the set-up worked.
set -euo pipefail
package=$1
unit=$2
name=${package##*/}

# the unit asks the instance metadata service, which may not answer yet when a node reboots
cat > /usr/local/sbin/wait-for-instance-metadata <<'WAIT'
#!/bin/bash
for _ in $(seq 60); do
  curl -fsS -o /dev/null -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' \
    --connect-timeout 2 http://169.254.169.254/latest/api/token && exit 0
  sleep 2
done
exit 1
WAIT
chmod 755 /usr/local/sbin/wait-for-instance-metadata
mkdir -p "/etc/systemd/system/$unit.d"
cat > "/etc/systemd/system/$unit.d/wait-for-instance-metadata.conf" <<'UNIT'
[Unit]
Wants=network-online.target
After=network-online.target

[Service]
ExecStartPre=/usr/local/sbin/wait-for-instance-metadata
UNIT
systemctl daemon-reload

if ! systemctl start "$unit" 2>/dev/null; then
  # the package divides the CPUs among the interfaces by module options, which modules that are loaded do not read again
  if grep -qs '^libcfs ' /proc/modules; then
    lustre_rmmod || echo "Lustre's modules are in use, so not every EFA interface may be used" >&2
  fi
  cd /root
  curl -fsSO --retry 5 "$package.zip"
  python3 -m zipfile -e "$name.zip" .
  (cd "$name" && bash ./setup.sh) || true
  systemctl daemon-reload
  systemctl start "$unit"
fi
