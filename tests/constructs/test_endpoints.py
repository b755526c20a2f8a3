"""The S3 gateway endpoint and the interface endpoints of AWS services."""

import pytest

from ultracluster.catalog.s3_endpoint import aws_owned_buckets
from ultracluster.config.network import CreateNetwork, Network
from ultracluster.constructs.network import ClusterNetwork


def network(stack, zone="us-east-2b", **settings):
    create = Network(create=CreateNetwork(**settings))
    buckets = {"existing_buckets": ["their-bucket"], "read_only_buckets": ["open-data", "more-open-data"]}
    return ClusterNetwork(stack, "Network", settings=create, zone=zone, **buckets)


@pytest.fixture(scope="module")
def template(synth):
    return synth(network)


@pytest.fixture(scope="module")
def isolated(synth):
    return synth(lambda stack: network(stack, nat_gateways=0, private_endpoints=False, flow_logs=False))


def subnet_id(template, block):
    """Logical id of the subnet with this CIDR block."""
    (found,) = template.find_resources("AWS::EC2::Subnet", {"Properties": {"CidrBlock": block}})
    return found


def gateway(template):
    (endpoint,) = template.find_resources(
        "AWS::EC2::VPCEndpoint", {"Properties": {"VpcEndpointType": "Gateway"}}
    ).values()
    return endpoint["Properties"]


def test_s3_endpoint_is_in_the_route_tables_of_all_private_subnets(template):
    tables = {table["Ref"] for table in gateway(template)["RouteTableIds"]}
    associations = template.find_resources("AWS::EC2::SubnetRouteTableAssociation").values()
    ids = {subnet_id(template, block) for block in ("10.0.0.0/20", "10.0.16.0/20", "10.0.128.0/17")}
    assert tables == {
        association["Properties"]["RouteTableId"]["Ref"]
        for association in associations
        if association["Properties"]["SubnetId"]["Ref"] in ids
    }


def test_s3_endpoint_allows_own_and_existing_buckets_and_reading_aws_software(template):
    own, aws, existing, *_ = gateway(template)["PolicyDocument"]["Statement"]
    assert own["Condition"] == {"StringEquals": {"aws:ResourceAccount": "111122223333"}}
    assert aws["Action"] == "s3:GetObject"
    assert sorted(aws["Resource"]) == sorted(f"arn:aws:s3:::{name}/*" for name in aws_owned_buckets("us-east-2"))
    assert existing["Resource"] == ["arn:aws:s3:::their-bucket", "arn:aws:s3:::their-bucket/*"]


def test_s3_endpoint_allows_listing_and_reading_read_only_buckets_and_not_writing_them(template):
    *_, listing, reading = gateway(template)["PolicyDocument"]["Statement"]
    assert (listing["Action"], reading["Action"]) == ("s3:ListBucket", "s3:GetObject")
    assert listing["Resource"] == ["arn:aws:s3:::open-data", "arn:aws:s3:::more-open-data"]
    assert reading["Resource"] == ["arn:aws:s3:::open-data/*", "arn:aws:s3:::more-open-data/*"]


def test_s3_endpoint_allows_pcs_software_and_container_layers_of_its_region():
    assert {"aws-pcs-repo-eu-west-2", "prod-registry-k8s-io-eu-west-2"} <= set(aws_owned_buckets("eu-west-2"))


def services(template):
    """Services that have an interface endpoint."""
    endpoints = template.find_resources("AWS::EC2::VPCEndpoint", {"Properties": {"VpcEndpointType": "Interface"}})
    names = [endpoint["Properties"]["ServiceName"] for endpoint in endpoints.values()]
    assert len(set(names)) == len(names)
    return {name.removeprefix("com.amazonaws.us-east-2.") for name in names}


def test_interface_endpoints_have_private_dns_and_two_subnets(template):
    endpoints = template.find_resources("AWS::EC2::VPCEndpoint", {"Properties": {"VpcEndpointType": "Interface"}})
    properties = [endpoint["Properties"] for endpoint in endpoints.values()]
    assert all(each["PrivateDnsEnabled"] and len(each["SubnetIds"]) == 2 for each in properties)


def test_each_control_plane_has_the_endpoints_that_its_nodes_call(template, synth):
    def kubernetes(**settings):
        create = Network(create=CreateNetwork())
        return synth(
            lambda stack: ClusterNetwork(
                stack, "Network", settings=create, zone="us-east-2b", control_plane="eks", **settings
            )
        )

    slurm, eks, karpenter = services(template), services(kubernetes()), services(kubernetes(karpenter=True))
    assert slurm & eks == {"ssm", "ssmmessages", "ecr.api", "ecr.dkr", "logs", "sts"}
    assert slurm - eks == {"pcs", "aps-workspaces"}
    assert eks - slurm == {"ec2", "eks", "eks-auth", "fsx"}
    assert karpenter - eks == {"sqs"}
    assert eks - services(kubernetes(lustre=False)) == {"fsx"}


def test_only_the_cluster_security_group_reaches_the_endpoints_and_only_on_443(template):
    (endpoints,) = template.find_resources(
        "AWS::EC2::SecurityGroup", {"Properties": {"GroupDescription": "Interface endpoints of AWS services"}}
    )
    (cluster,) = template.find_resources(
        "AWS::EC2::SecurityGroup", {"Properties": {"GroupDescription": "Controller, login nodes and compute nodes"}}
    )
    rules = template.find_resources(
        "AWS::EC2::SecurityGroupIngress", {"Properties": {"GroupId": {"Fn::GetAtt": [endpoints, "GroupId"]}}}
    )
    (rule,) = [rule["Properties"] for rule in rules.values()]
    assert rule["SourceSecurityGroupId"] == {"Fn::GetAtt": [cluster, "GroupId"]}
    assert (rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) == ("tcp", 443, 443)


def test_without_private_endpoints_only_the_free_s3_endpoint_remains(isolated):
    isolated.resource_count_is("AWS::EC2::VPCEndpoint", 1)
