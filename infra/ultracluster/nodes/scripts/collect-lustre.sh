#!/bin/bash
# Writes metrics of the Lustre client to the folder of node exporter's textfile collector every $1 seconds:
# traffic, capacity, connections, and messages by network, which show a client that uses TCP where it should use EFA.
# On a node that mounts file systems itself, each further argument is a mount point and the mount name of its file system.
set -euo pipefail
cat > /usr/local/sbin/collect-lustre <<'SCRIPT'
#!/bin/bash
# Writes metrics of the Lustre client in the text format of Prometheus. Arguments: mount points, each with a mount name.
set -euo pipefail
folder=/var/lib/node_exporter/textfile
mkdir -p "$folder"
{
  echo == mounts
  cat /proc/mounts
  echo == parameters
  lctl get_param 'llite.*.stats' 'llite.*.kbytestotal' 'llite.*.kbytesfree' 'llite.*.kbytesavail' \
    'llite.*.filestotal' 'llite.*.filesfree' 'mdc.*.import' 'osc.*.import' 2>/dev/null || true
  echo == networks
  lnetctl net show --verbose 2>/dev/null || true
} | awk -v expected="$*" '
  function sample(name, labels, value) {
    if (!(name in samples)) order[++count] = name
    samples[name] = samples[name] name "{" labels "} " value "\n"
  }
  function of(file_system) { return "target=\"" file_system "\"" }
  BEGIN {
    words = split(expected, word, " ")
    for (i = 1; i < words; i += 2) configured[word[i]] = word[i + 1]
    capacity["kbytestotal"] = "lustre_capacity_kibibytes"
    capacity["kbytesfree"] = "lustre_free_kibibytes"
    capacity["kbytesavail"] = "lustre_available_kibibytes"
    capacity["filestotal"] = "lustre_inodes_maximum"
    capacity["filesfree"] = "lustre_inodes_free"
    operation["read_bytes"] = "read"
    operation["write_bytes"] = "write"
  }
  $1 == "==" { part = $2; next }
  part == "mounts" && $3 == "lustre" && $2 in configured { mounted[$2] = 1 }
  # a mount is llite.NAME-ADDRESS; the address differs after each mount, so it is no label
  part == "parameters" && /^(llite|mdc|osc)\.[^ ]*=/ {
    split($0, pair, "=")
    split(pair[1], parameter, ".")
    file_system = parameter[2]
    sub(/-.*/, "", file_system)
    if (parameter[3] in capacity) sample(capacity[parameter[3]], of(file_system), pair[2])
    next
  }
  # NAME COUNT samples [UNIT] MINIMUM MAXIMUM SUM
  part == "parameters" && $3 == "samples" {
    if ($1 in operation) {
      sample("lustre_" operation[$1] "_samples_total", of(file_system), $2)
      sample("lustre_" operation[$1] "_bytes_total", of(file_system), $7)
    } else sample("lustre_stats_total", of(file_system) ",operation=\"" $1 "\"", $2)
  }
  part == "parameters" && $1 == "target:" {
    server = $2
    sub(/_UUID$/, "", server)
    sub(/^[^-]*-/, "", server)
  }
  # the client closes connections to servers that it does not use, and opens them again when it does
  part == "parameters" && $1 == "state:" {
    sample("lustre_import_full", of(file_system) ",server=\"" server "\"", $2 == "FULL" || $2 == "IDLE")
  }
  part == "parameters" && $1 == "current_connection:" && server ~ /^OST/ {
    sub(/^.*@/, "", $2)
    sub(/[0-9]*$/, "", $2)
    connection[of(file_system) ",server=\"" server "\""] = $2
  }
  part == "networks" && $2 == "net" && $3 == "type:" { network = $4 }
  part == "networks" && $1 == "status:" && $2 == "up" { up[network] = 1 }
  part == "networks" && network != "lo" && /(send|recv|drop)_count:/ {
    sub(/_count:/, "", $1)
    messages[$1, network] += $2
    networks[network]
  }
  END {
    for (i = 1; i < words; i += 2) {
      sample("lustre_mounted", of(word[i + 1]) ",mountpoint=\"" word[i] "\"", (word[i] in mounted) + 0)
    }
    # a connection has the primary address of its server, tcp, even where LNet sends over EFA: its messages tell. Metadata
    # servers are always reached over TCP.
    efa = up["efa"] && messages["send", "efa"] > 0 && messages["send", "efa"] >= messages["send", "tcp"] / 100
    for (label in connection) {
      sample("lustre_import_network", label ",network=\"" (efa ? "efa" : connection[label]) "\"", 1)
    }
    for (network in networks) {
      label = "network=\"" network "\""
      sample("lustre_lnet_send_messages_total", label, messages["send", network])
      sample("lustre_lnet_receive_messages_total", label, messages["recv", network])
      sample("lustre_lnet_drops_total", label, messages["drop", network])
    }
    for (i = 1; i <= count; i++) {
      name = order[i]
      printf "# HELP %s Lustre client\n# TYPE %s %s\n%s", name, name, name ~ /_total$/ ? "counter" : "gauge", samples[name]
    }
  }
' > "$folder/lustre.new"
mv "$folder/lustre.new" "$folder/lustre.prom"
SCRIPT
chmod 755 /usr/local/sbin/collect-lustre

interval=$1
shift
cat > /etc/systemd/system/collect-lustre.service <<UNIT
[Unit]
Description=Metrics of the Lustre client

[Service]
Type=oneshot
ExecStart=/usr/local/sbin/collect-lustre $*
TimeoutStartSec=1min
Nice=19
LogLevelMax=warning
UNIT
cat > /etc/systemd/system/collect-lustre.timer <<UNIT
[Unit]
Description=Metrics of the Lustre client

[Timer]
OnActiveSec=1s
OnUnitActiveSec=${interval}s
AccuracySec=1s

[Install]
WantedBy=timers.target
UNIT
systemctl daemon-reload
systemctl enable collect-lustre.timer
systemctl start collect-lustre.timer
