"""What goes into a Kubernetes cluster: chart values and objects, worked out from an environment. Pure, no CDK."""
