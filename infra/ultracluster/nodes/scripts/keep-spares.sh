#!/bin/bash
# Reserves spare nodes, "GROUP=COUNT" each, in a Slurm reservation for each group. It releases one node for each node of the
# group that fails. A systemd timer updates it every minute.
set -euo pipefail
cat > /usr/local/sbin/keep-spares <<'SCRIPT'
#!/bin/bash
# Makes the reservation spares-GROUP hold COUNT nodes, less the number of nodes that are down or drained, for each GROUP=COUNT.
set -euo pipefail
export LC_ALL=C
# the image has several versions of Slurm; slurmctld does not answer commands that are newer than itself
scontrol=
for found in /opt/aws/pcs/scheduler/slurm-*/bin/scontrol; do
  if "$found" ping > /dev/null 2>&1; then
    scontrol=$found
    break
  fi
done
[ -n "$scontrol" ] || { echo "Slurm does not answer" >&2; exit 1; }
# all login nodes run this; a reservation that is right already is not touched
nodes=$("$scontrol" --all --oneliner show nodes)
for spare in "$@"; do
  group=${spare%=*} reservation=spares-${spare%=*}
  shown=$("$scontrol" --oneliner show reservation "$reservation" 2> /dev/null) || shown=
  held=
  if [[ $shown =~ \ Nodes=([^ ]+) ]]; then
    held=$("$scontrol" show hostnames "${BASH_REMATCH[1]}" | sort)
  fi
  # first line: number of failed nodes; second line: the others, reserved ones first, then idle ones
  mapfile -t found < <(awk -v group="$group" -v held="$(tr '\n' ' ' <<< "$held")" '
    BEGIN { split(held, list, " "); for (i in list) holds[list[i]] }
    {
      # PCS names nodes after the node group, whose name ends with a hash of its instance types
      name = substr($1, 10)
      if (name !~ "^" group "-([0-9a-f]+-)?[0-9]+$" || !match($0, " State=[^ ]+")) next
      state = substr($0, RSTART + 7, RLENGTH - 7)
      if (state ~ /DOWN|DRAIN|FAIL|POWER|UNKNOWN|FUTURE|NOT_RESPONDING|INVAL/) lost++
      else {
        rank = name in holds ? 1 : state ~ /^IDLE/ ? 2 : 3
        usable[rank] = usable[rank] " " name
      }
    }
    END { print lost + 0; print usable[1] usable[2] usable[3] }
  ' <<< "$nodes")
  count=$((${spare#*=} - found[0]))
  read -ra usable <<< "${found[1]}"
  chosen=()
  [ "$count" -le 0 ] || chosen=("${usable[@]:0:count}")
  wanted=$(printf '%s\n' "${chosen[@]}" | sort)
  [ "$wanted" != "$held" ] || continue
  list=$(IFS=,; echo "${chosen[*]}")
  if [ -z "$list" ]; then
    "$scontrol" delete "reservationname=$reservation"
  elif [ -n "$held" ]; then
    "$scontrol" update "reservationname=$reservation" "nodes=$list"
  else
    "$scontrol" create reservation "reservationname=$reservation" users=root starttime=now duration=infinite \
      flags=ignore_jobs "nodes=$list" > /dev/null
  fi
  echo "spares of $group: ${list:-none}, since ${found[0]} nodes have failed"
done
SCRIPT
chmod 755 /usr/local/sbin/keep-spares
cat > /etc/systemd/system/keep-spares.service <<UNIT
[Unit]
Description=Spare nodes of Slurm

[Service]
Type=oneshot
ExecStart=/usr/local/sbin/keep-spares $*
TimeoutStartSec=1min
UNIT
cat > /etc/systemd/system/keep-spares.timer <<'UNIT'
[Unit]
Description=Spare nodes of Slurm

[Timer]
OnActiveSec=10s
OnUnitInactiveSec=1min

[Install]
WantedBy=timers.target
UNIT
systemctl daemon-reload
systemctl enable keep-spares.timer
systemctl start keep-spares.timer
