#!/bin/bash
# Sets up the CloudWatch agent, which sends logs of the node to the log group $2 in Region $1: kernel, boot, Slurm, job ends.
# Nothing here delays the node: a systemd unit installs the agent later, from AWS's bucket in the Region, if it is missing.
set -euo pipefail
region=$1 group=$2
mkdir -p /etc/ultracluster /var/log/ultracluster
# other users of the node may not read them
chmod 700 /var/log/ultracluster

write_unit() { # name, description, options of journalctl
  cat > "/etc/systemd/system/$1-log.service" <<UNIT
[Unit]
Description=$2 as a file

[Service]
ExecStart=/usr/bin/journalctl $3 --boot --lines=all --follow --output=short-iso
StandardOutput=append:/var/log/ultracluster/$1.log
Restart=always
Nice=19

[Install]
WantedBy=multi-user.target
UNIT
}
# the kernel's messages, which include those of Lustre and the XIDs of GPUs, as a file on every distribution
write_unit kernel "Messages of the kernel" --dmesg
# what slurmd says until it has its log file, or where it has none
write_unit slurmd "Messages of slurmd" --unit=slurmd.service
# a timer of its own: the distribution rotates logs once a day, by when a storm of messages would have filled the disk
cat > /usr/local/sbin/rotate-logs <<'SCRIPT'
#!/bin/bash
# Begins each log of more than 50 MB anew, and keeps what it held in one further file. Programs that append go on.
set -euo pipefail
shopt -s nullglob
for file in /var/log/ultracluster/*.log; do
  if [ "$(stat --format %s "$file")" -gt 50000000 ]; then
    cp "$file" "$file.1"
    : > "$file"
  fi
done
SCRIPT
chmod 755 /usr/local/sbin/rotate-logs
cat > /etc/systemd/system/rotate-logs.service <<'UNIT'
[Unit]
Description=Keeps logs of the kernel and of jobs small

[Service]
Type=oneshot
ExecStart=/usr/local/sbin/rotate-logs
Nice=19
LogLevelMax=warning
UNIT
cat > /etc/systemd/system/rotate-logs.timer <<'UNIT'
[Unit]
Description=Keeps logs of the kernel and of jobs small

[Timer]
OnActiveSec=1min
OnUnitActiveSec=1min

[Install]
WantedBy=timers.target
UNIT

streams='' separator=''
while read -r name path several; do
  streams+="$separator{\"file_path\": \"$path\", \"log_group_name\": \"$group\", \"log_stream_name\": \"$PCS_NODE_ID/$name\""
  streams+=", \"publish_multi_logs\": ${several:-false}}"
  separator=,
done <<'STREAMS'
kernel /var/log/ultracluster/kernel.log
jobs /var/log/ultracluster/jobs.log
health /var/log/ultracluster/health.log
job-programs /var/log/ultracluster/job-programs.log
slurmd /var/log/slurmd.log
slurmd-journal /var/log/ultracluster/slurmd.log
cloud-init /var/log/cloud-init-output.log
pcs /var/log/amazon/pcs/bootstrap.log
boot-steps /var/log/amazon/pcs/lifecycle/actions/**.log true
fabric-manager /var/log/fabricmanager.log
STREAMS
printf '{"agent": {"region": "%s"}, "logs": {"logs_collected": {"files": {"collect_list": [%s]}}}}\n' \
  "$region" "$streams" > /etc/ultracluster/logs.json

cat > /usr/local/sbin/start-log-agent <<'SCRIPT'
#!/bin/bash
# Adds the configuration of this node's logs to that of the CloudWatch agent, which it installs if need be. $1 is the Region.
set -euo pipefail
control=/opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl
if [ ! -x "$control" ]; then
  case $(uname -m) in aarch64) architecture=arm64 ;; *) architecture=amd64 ;; esac
  bucket=https://amazoncloudwatch-agent-$1.s3.$1.amazonaws.com
  if command -v apt-get > /dev/null; then
    curl -fsS --retry 5 -o /root/amazon-cloudwatch-agent.deb "$bucket/ubuntu/$architecture/latest/amazon-cloudwatch-agent.deb"
    dpkg --install /root/amazon-cloudwatch-agent.deb
  else
    dnf install -y amazon-cloudwatch-agent
  fi
fi
"$control" -a append-config -m ec2 -s -c file:/etc/ultracluster/logs.json
SCRIPT
chmod 755 /usr/local/sbin/start-log-agent
cat > /etc/systemd/system/log-agent.service <<UNIT
[Unit]
Description=Sends logs of the node to CloudWatch
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/start-log-agent $region
Restart=on-failure
RestartSec=1min
Nice=10

[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
for unit in kernel-log.service slurmd-log.service log-agent.service rotate-logs.timer; do
  systemctl enable "$unit"
  systemctl start --no-block "$unit"
done
