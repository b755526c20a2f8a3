"""What a node does at first boot: scripts, units and MIME user data. Pure text, no CDK."""
