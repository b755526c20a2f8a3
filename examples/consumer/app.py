"""A CDK app with a Lustre file system that GPU nodes mount over EFA, in a new VPC."""

import aws_cdk as cdk

from ultracluster import ClusterNetwork, CreateNetwork, DataKey, Lustre, Network, TrainingFileSystem

app = cdk.App()
stack = cdk.Stack(app, "research", env=cdk.Environment(region="us-east-2"))
addresses = Network(create=CreateNetwork(cidr="10.30.0.0/20"))
network = ClusterNetwork(stack, "Network", settings=addresses, zone="us-east-2b")
scratch = TrainingFileSystem(
    stack,
    "Scratch",
    settings=Lustre(capacity_gib=4800, throughput_mbps_per_tib=1000, efa=True),
    vpc=network.vpc,
    subnet=network.node_subnet,
    key=DataKey(stack, "Key", description="Scratch space"),
)
scratch.grant_mount(network.efa_security_group, over_efa=True)
cdk.CfnOutput(stack, "MountFrom", value=f"{scratch.dns_name}@tcp:/{scratch.mount_name}")
app.synth()
