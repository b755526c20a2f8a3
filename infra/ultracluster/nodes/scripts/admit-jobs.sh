#!/bin/bash
# The last step before jobs: slurmd of a compute node starts only after it (see fence.sh). /run is empty after a reboot.
set -euo pipefail
mkdir -p /run/ultracluster
: > /run/ultracluster/ready
