#!/bin/bash
# Creates QOS, accounts of teams and associations of their members in Slurm's accounting; runs on a login node as root.
# Lines of $1:
#   account NAME FAIRSHARE GPUS QOS,... DEFAULT-QOS   GPUS -1: no limit
#   member ACCOUNT USER                               an account without these lines keeps the members that people add
# It is idempotent, and deletes nothing, so that the history of jobs stays: accounts and members that are no longer listed
# get limits of 0 jobs. Other limits are not changed.
set -euo pipefail
teams=$1
export LC_ALL=C
has_line() { printf '%s\n' "$1" | grep -qxF -- "$2"; }
# the image has several versions of Slurm; slurmdbd does not answer commands that are newer than itself
find_sacctmgr() {
  local found
  for found in /opt/aws/pcs/scheduler/slurm-*/bin/sacctmgr; do
    if "$found" --noheader show cluster 2> /dev/null | grep -q .; then
      program=$found
      return
    fi
  done
  return 1
}
sacctmgr() { "$program" "$@"; }
shown() { sacctmgr --noheader --parsable2 show "$@"; }

# slurmdbd knows gres/gpu once a controller with AccountingStorageTRES=gres/gpu has registered
ready() {
  find_sacctmgr || return 1
  gpus_known=$(shown tres | grep -c '^gres|gpu|' || true)
  [ "$gpus_known" -gt 0 ] || [[ ! $teams =~ account\ [^\ ]+\ [0-9]+\ [0-9] ]]
}
for attempt in $(seq 120); do
  ready && break
  [ "$attempt" -lt 120 ] || { echo "slurmdbd does not answer, or knows no gres/gpu, which limits need" >&2; exit 1; }
  sleep 5
done

found=$(shown qos format=name)
has_line "$found" high || sacctmgr --immediate add qos high
has_line "$found" normal || sacctmgr --immediate add qos normal
has_line "$found" low || sacctmgr --immediate add qos low
sacctmgr --immediate modify qos high set priority=100 preempt=normal,low
sacctmgr --immediate modify qos normal set priority=50 preempt=low
sacctmgr --immediate modify qos low set priority=0 preempt=
# time for preempted jobs to save a checkpoint, as long as EC2's notice to Spot Instances; a changed value stays
for qos in normal low; do
  if has_line "$(shown qos format=name,gracetime)" "$qos|00:00:00"; then
    sacctmgr --immediate modify qos "$qos" set gracetime=120
  fi
done

accounts=$(shown account format=account)
limits=$(shown associations format=account,user,grpjobs,grpsubmitjobs,maxjobs,maxsubmitjobs)
mine=''
while read -r kind account fairshare gpus qos default; do
  [ "$kind" = account ] || continue
  mine+="$account"$'\n'
  has_line "$accounts" "$account" || sacctmgr --immediate add account "$account" organization=ultracluster
  sacctmgr --immediate modify account "$account" set organization=ultracluster
  sacctmgr --immediate modify account "$account" set fairshare="$fairshare" qos="$qos" defaultqos="$default"
  [ "$gpus_known" -eq 0 ] || sacctmgr --immediate modify account "$account" set grptres=gres/gpu="$gpus"
  if has_line "$limits" "$account||0|0||"; then # a team that comes back
    sacctmgr --immediate modify account "$account" set grpjobs=-1 grpsubmitjobs=-1
  fi
done <<< "$teams"
while IFS='|' read -r account organization; do
  if [ "$organization" = ultracluster ] && ! has_line "$mine" "$account"; then
    sacctmgr --immediate modify account "$account" set grpjobs=0 grpsubmitjobs=0
  fi
done < <(shown account format=account,organization)

declare -A closed teams_of
while IFS='|' read -r account user _ _ jobs submitted; do
  [ -z "$user" ] || closed["$account $user"]=$jobs,$submitted
done <<< "$limits"
wanted='' listed=''
while read -r kind account user _; do
  [ "$kind" = member ] || continue
  wanted+="$account $user"$'\n' listed+="$account"$'\n'
  teams_of["$user"]+="$account "
  case ${closed["$account $user"]-new} in
    new) sacctmgr --immediate add user "$user" account="$account" ;;
    0,0) sacctmgr --immediate modify user where name="$user" account="$account" set maxjobs=-1 maxsubmitjobs=-1 ;;
  esac
done <<< "$teams"
for each in "${!closed[@]}"; do
  account=${each% *} user=${each#* }
  if has_line "$mine" "$account" && has_line "$listed" "$account" && ! has_line "$wanted" "$each" && [ "${closed["$each"]}" != 0,0 ]; then
    sacctmgr --immediate modify user where name="$user" account="$account" set maxjobs=0 maxsubmitjobs=0
  fi
done
# a job without --account belongs to the default account, which must be one of the user's teams
while IFS='|' read -r user default; do
  first=${teams_of["$user"]-}
  if [ -n "$first" ] && [[ " $first" != *" $default "* ]]; then
    sacctmgr --immediate modify user where name="$user" set defaultaccount="${first%% *}"
  fi
done < <(shown user format=user,defaultaccount)
echo "accounts: $(tr '\n' ' ' <<< "$mine")"
