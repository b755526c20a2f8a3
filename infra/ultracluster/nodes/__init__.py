"""What a node does at boot: scripts, units and MIME user data. Pure text, no CDK."""
