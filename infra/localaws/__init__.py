"""The embedded AWS: CloudFormation and the services of a GPU cluster, on loopback or in this process."""
