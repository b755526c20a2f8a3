#!/bin/bash
# Writes the counters of the EFA devices to the folder of node exporter's textfile collector every $1 seconds.
# Names are node_amazonefa_COUNTER{device,port}, without a port for counters of the device: no Prometheus exporter knows EFA.
set -euo pipefail
cat > /usr/local/sbin/collect-efa <<'SCRIPT'
#!/bin/bash
# Writes the counters of the EFA driver in the text format of Prometheus. They are cumulative since the driver was loaded.
set -euo pipefail
shopt -s nullglob
declare -A samples
add() { # folder of counters, labels
  local file name value
  for file in "$1"/*; do
    name=${file##*/}
    case $name in
      # how long the kernel caches counters, and counts that say nothing
      lifespan | submitted_cmds | completed_cmds) ;;
      # a device that is being reset answers no read
      *) if read -r value 2>/dev/null < "$file"; then samples[$name]+="node_amazonefa_$name{$2} $value"$'\n'; fi ;;
    esac
  done
}

information='' states=''
for device in /sys/class/infiniband/*; do
  read -r vendor 2>/dev/null < "$device/device/vendor" || continue
  [ "$vendor" = 0x1d0f ] || continue # Amazon
  name=${device##*/}
  information+="node_amazonefa_info{device=\"$name\"} 1"$'\n'
  add "$device/hw_counters" "device=\"$name\""
  for port in "$device"/ports/*; do
    labels="device=\"$name\",port=\"${port##*/}\""
    # "4: ACTIVE"
    if IFS=: read -r state _ 2>/dev/null < "$port/state"; then
      states+="node_amazonefa_port_state{$labels} $state"$'\n'
    fi
    add "$port/hw_counters" "$labels"
  done
done

folder=/var/lib/node_exporter/textfile
mkdir -p "$folder"
{
  printf '# HELP node_amazonefa_info EFA devices of the node.\n# TYPE node_amazonefa_info gauge\n%s' "$information"
  printf '# HELP node_amazonefa_port_state State of the port, 4 for active.\n'
  printf '# TYPE node_amazonefa_port_state gauge\n%s' "$states"
  for name in "${!samples[@]}"; do
    printf '# HELP node_amazonefa_%s Counter %s of the EFA driver.\n' "$name" "$name"
    printf '# TYPE node_amazonefa_%s counter\n%s' "$name" "${samples[$name]}"
  done
} > "$folder/efa.new"
mv "$folder/efa.new" "$folder/efa.prom"
SCRIPT
chmod 755 /usr/local/sbin/collect-efa

cat > /etc/systemd/system/collect-efa.service <<'UNIT'
[Unit]
Description=Counters of the EFA devices

[Service]
Type=oneshot
ExecStart=/usr/local/sbin/collect-efa
TimeoutStartSec=1min
Nice=19
LogLevelMax=warning
UNIT
cat > /etc/systemd/system/collect-efa.timer <<UNIT
[Unit]
Description=Counters of the EFA devices

[Timer]
OnActiveSec=1s
OnUnitActiveSec=${1}s
AccuracySec=1s

[Install]
WantedBy=timers.target
UNIT
systemctl daemon-reload
systemctl enable collect-efa.timer
systemctl start collect-efa.timer
