#!/bin/bash
# Lets only the device plugin hand out GPUs: an image that sets NVIDIA_VISIBLE_DEVICES would see all GPUs of its node
# without a request, also those of other teams. Privileged containers may still ask so. The device plugin asks by
# mounts of /dev/null, which pods of teams cannot make, or by CDI. The runtime reads its configuration at each start.
set -euo pipefail
command -v nvidia-container-runtime > /dev/null || exit 0
nvidia-ctk config --in-place \
  --set accept-nvidia-visible-devices-envvar-when-unprivileged=false \
  --set accept-nvidia-visible-devices-as-volume-mounts=true
