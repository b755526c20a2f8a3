#!/bin/bash
# Runs node exporter $2, Prometheus as agent $1 and, on nodes with GPUs, DCGM exporter $3, as containers of systemd units.
# Nothing here delays the node or its jobs: systemd pulls the images later, with retries, and Docker limits CPU and memory.
# Exporters listen on the loopback interface, where only the agent of the node needs them.
set -euo pipefail
agent=$1 node_exporter=$2 dcgm_exporter=${3:-}
folder=/etc/ultracluster/metrics

cat > /usr/local/sbin/pull-image <<'SCRIPT'
#!/bin/bash
# Pulls the container image $1 unless the node has it. A registry of ECR wants a password of the node's role.
set -euo pipefail
image=$1
docker image inspect "$image" > /dev/null 2>&1 && exit
registry=${image%%/*}
case $registry in
  *.dkr.ecr.*.amazonaws.com*)
    region=${registry#*.dkr.ecr.}
    aws ecr get-login-password --region "${region%%.*}" | docker login --username AWS --password-stdin "$registry"
    ;;
esac
docker pull --quiet "$image"
SCRIPT
chmod 755 /usr/local/sbin/pull-image

# Docker keeps what a container writes, besides the journal, and by default without a limit
limits="--log-driver json-file --log-opt max-size=10m --log-opt max-file=2"
write_unit() { # name, description, image, options of docker run, arguments of the program
  cat > "/etc/systemd/system/$1.service" <<UNIT
[Unit]
Description=$2
Requires=docker.service
After=docker.service network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStartPre=-/usr/bin/docker rm --force $1
ExecStartPre=/usr/local/sbin/pull-image $3
ExecStart=/usr/bin/docker run --rm --name $1 --network host $limits $4 $3 $5
ExecStop=/usr/bin/docker stop $1
Restart=always
RestartSec=30s
TimeoutStartSec=30min
Nice=10

[Install]
WantedBy=multi-user.target
UNIT
}

textfile=/var/lib/node_exporter/textfile
storage=/var/lib/ultracluster/metrics
mkdir -p "$textfile" "$storage"
# a user of its own, because nobody is also who jobs may run as
id ultracluster-metrics > /dev/null 2>&1 ||
  useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin ultracluster-metrics
user=$(id -u ultracluster-metrics)
chown -R "$user:$user" "$storage"
# its collector of systemd talks to the bus, which Docker's AppArmor profile denies
write_unit node-exporter "Metrics of the node" "$node_exporter" \
  "--user $user:$user --pid host --cpus 1 --memory 256m --security-opt apparmor=unconfined -v /:/host:ro,rslave \
-v /run/dbus/system_bus_socket:/var/run/dbus/system_bus_socket:ro" \
  "--path.rootfs=/host --web.listen-address=127.0.0.1:9100 --collector.textfile.directory=/host$textfile \
--collector.ethtool --collector.ethtool.metrics-include=^.*_allowance_exceeded\$\$ \
--collector.systemd --collector.systemd.unit-include=.+[.](service|timer|mount) \
--collector.netdev.device-exclude=^(veth|docker|lo).* \
--collector.filesystem.mount-points-exclude=^/(dev|proc|sys|run|snap|var/lib/docker)(\$\$|/) \
--collector.filesystem.fs-types-exclude=^(lustre|overlay|squashfs|tmpfs|nsfs|fuse.*)\$\$"
# the agent keeps two hours of samples while AMP cannot be reached
write_unit metrics-agent "Writes metrics to Amazon Managed Service for Prometheus" "$agent" \
  "--user $user:$user --cpus 1 --memory 512m -v $folder:/etc/prometheus:ro -v $storage:/prometheus" \
  "--agent --config.file=/etc/prometheus/prometheus.yml --storage.agent.path=/prometheus \
--storage.agent.retention.max-time=2h --web.listen-address=127.0.0.1:9090"
units=(node-exporter metrics-agent)
if [ -n "$dcgm_exporter" ]; then
  write_unit dcgm-exporter "Metrics of the GPUs" "$dcgm_exporter" \
    "--gpus all --user 0 --cap-add SYS_ADMIN --cpus 2 --memory 2g -v $folder/dcgm-counters.csv:/etc/dcgm-exporter/counters.csv:ro \
-v /run/ultracluster/gpu-jobs:/gpu-jobs:ro" \
    "--address 127.0.0.1:9400 --collectors /etc/dcgm-exporter/counters.csv --hpc-job-mapping-dir /gpu-jobs \
--collect-interval 10000"
  units+=(dcgm-exporter)
fi
mkdir -p /run/ultracluster/gpu-jobs
systemctl daemon-reload
for unit in "${units[@]}"; do
  systemctl enable "$unit.service"
done
command -v docker > /dev/null || { echo "the image of this node has no Docker, so it sends no metrics" >&2; exit 1; }
for unit in "${units[@]}"; do
  systemctl start --no-block "$unit.service"
done
