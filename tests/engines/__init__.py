"""Tests that run real engines: cloud-init and systemd of a Debian folder that scripts/engines.sh builds."""
