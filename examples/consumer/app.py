"""A CDK app of your own: a Lustre scratch space that GPU nodes reach over EFA, in a network made for them."""

import aws_cdk as cdk

from ultracluster.config.network import CreateNetwork, Network
from ultracluster.config.storage import Lustre
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.lustre import TrainingFileSystem
from ultracluster.constructs.network import ClusterNetwork

app = cdk.App()
stack = cdk.Stack(app, "research", env=cdk.Environment(region="us-east-2"))
addresses = Network(create=CreateNetwork(cidr="10.30.0.0/20"))
network = ClusterNetwork(stack, "Network", settings=addresses, zone="us-east-2b")
clients = {"clients": network.cluster_security_group, "efa_clients": network.efa_security_group}
space = Lustre(capacity_gib=4800, throughput_mbps_per_tib=1000, efa=True)
key = DataKey(stack, "Key", description="Scratch space")
scratch = TrainingFileSystem(
    stack, "Scratch", settings=space, vpc=network.vpc, subnet=network.node_subnet, key=key, **clients
)
cdk.CfnOutput(stack, "MountFrom", value=f"{scratch.dns_name}@tcp:/{scratch.mount_name}")
app.synth()
