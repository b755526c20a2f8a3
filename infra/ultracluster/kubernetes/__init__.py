"""What runs in an EKS cluster: add-ons, Helm values and Kubernetes objects, computed from an environment. No CDK."""
