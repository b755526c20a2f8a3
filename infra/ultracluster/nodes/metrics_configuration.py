"""The step that writes the configuration of the metrics agent and of DCGM exporter, from the catalogue of metrics.

The script is generated, because its text follows from the catalogue; what differs between environments and nodes are
arguments, as with every step.
"""

from ultracluster.catalog.agents import DCGM_VERSION
from ultracluster.telemetry.agent import PLACEHOLDERS, agent_configuration, given_up
from ultracluster.telemetry.dcgm import counters_csv

NAME = "configure-metrics"
"""Name of the step."""

FOLDER = "/etc/ultracluster/metrics"
"""Folder of the configuration on a node."""

_SCRIPT = r"""#!/bin/bash
# Writes the configuration of the metrics agent: $1 remote write URL, $2 Region, $3 cluster, $4 environment, $5 and $6
# intervals in seconds for exporters and for Slurm, $7 instance type or auto, $8 node group, $9 gpus or cpu, then groups
# of metrics that are not sent.
set -euo pipefail
folder={folder}
mkdir -p "$folder/targets"
cat > "$folder/dcgm-counters.csv" <<'CSV'
{counters}CSV
configuration=$(cat <<'YAML'
{configuration}YAML
)
declare -A series=(
{series})
dropped=
for group in ${{*:10}}; do
  dropped+=${{series[$group]}}
done
# the name of the node in Slurm, such as train-1; the host name is EC2's (AWS HPC Recipes, pcs/cluster_dns, August 2026)
values=("$1" "$2" "$3" "$4" "$5" "$6" "$PCS_NODE_ID" "$dropped")
for placeholder in {placeholders}; do
  configuration=${{configuration//"$placeholder"/"${{values[0]}}"}}
  values=("${{values[@]:1}}")
done
printf '%s\n' "$configuration" > "$folder/prometheus.yml"
target() {{ # port
  printf '[{{"targets": ["127.0.0.1:%s"], "labels": {{"instance": "%s", "node": "%s", "instance_type": "%s", ' \
    "$1" "$PCS_NODE_ID" "$PCS_NODE_ID" "$instance_type"
  printf '"node_group": "%s"}}}}]\n' "$node_group"
}}
instance_type=$7 node_group=$8
if [ "$instance_type" = auto ]; then
  token=$(curl -fsS -X PUT -H "X-aws-ec2-metadata-token-ttl-seconds: 60" http://169.254.169.254/latest/api/token)
  instance_type=$(curl -fsS -H "X-aws-ec2-metadata-token: $token" \
    http://169.254.169.254/latest/meta-data/instance-type)
fi
target 9100 > "$folder/targets/node.json"
if [ "${{9:-}}" = gpus ]; then
  target 9400 > "$folder/targets/dcgm.json"
  target 9101 > "$folder/targets/jobs.json"
fi
"""


def script_text() -> str:
    """Text of the script."""
    return _SCRIPT.format(
        folder=FOLDER,
        counters=counters_csv(DCGM_VERSION),
        # the folder as the agent's container sees it
        configuration=agent_configuration("/etc/prometheus/targets"),
        series="".join(f"  [{group}]='{names}'\n" for group, names in given_up().items()),
        placeholders=" ".join(f'"{each}"' for each in PLACEHOLDERS),
    )
