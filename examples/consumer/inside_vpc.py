"""The same in your own `ec2.Vpc`, with your own security group, role, key and bucket."""

import aws_cdk as cdk
from aws_cdk import aws_ec2, aws_iam, aws_kms, aws_s3

from ultracluster import Lustre, MetricsWorkspace, Observability, S3Link, S3Links, TrainingFileSystem

app = cdk.App()
stack = cdk.Stack(app, "research", env=cdk.Environment(region="us-east-2"))
vpc = aws_ec2.Vpc(stack, "Vpc")
nodes = aws_ec2.SecurityGroup(stack, "Nodes", vpc=vpc)
role = aws_iam.Role(stack, "Jobs", assumed_by=aws_iam.ServicePrincipal("ec2.amazonaws.com"))
key = aws_kms.Key(stack, "Key")
bucket = aws_s3.Bucket(stack, "Datasets", encryption_key=key)

links = (S3Link(path="/datasets", bucket="datasets", import_events=("new", "changed")),)
space = Lustre(capacity_gib=2400, throughput_mbps_per_tib=250, links=links)
scratch = TrainingFileSystem(stack, "Scratch", settings=space, vpc=vpc, subnet=vpc.private_subnets[0], key=key)
scratch.grant_mount(nodes)
S3Links(stack, "Links", settings=links, file_system=scratch, buckets={"datasets": bucket})
metrics = MetricsWorkspace(stack, "Metrics", settings=Observability(), key=key)
metrics.grant_remote_write(role)
app.synth()
