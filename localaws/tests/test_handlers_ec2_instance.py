"""Instances that a launch template describes, and what ends with an instance."""

from typing import Any

from handler_parts import Stack

INSTANCE = "AWS::EC2::Instance"
OWN = {"IamInstanceProfile": "other", "Monitoring": False, "MetadataOptions": {"HttpTokens": "optional"}}


def described(stack: Stack, instance: str) -> Any:
    """An instance as EC2 describes it."""
    return stack.client("ec2").describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]


def test_an_instance_takes_the_settings_of_its_launch_template(stack: Stack) -> None:
    ec2 = stack.client("ec2")
    subnet = ec2.describe_subnets()["Subnets"][0]
    group = ec2.create_security_group(GroupName="g", Description="g", VpcId=subnet["VpcId"])["GroupId"]
    stack.client("iam").create_instance_profile(InstanceProfileName="nodes")
    data = {
        "ImageId": "ami-12c6146b",
        "InstanceType": "t3.small",
        "IamInstanceProfile": {"Name": "nodes"},
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "Monitoring": {"Enabled": True},
        "NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": subnet["SubnetId"], "Groups": [group]}],
    }
    template = stack.make("AWS::EC2::LaunchTemplate", LaunchTemplateData=data)
    made = stack.make(INSTANCE, LaunchTemplate={"LaunchTemplateId": template, "Version": "1"}, InstanceType="t3.micro")
    found = described(stack, made)
    assert (found["ImageId"], found["InstanceType"]) == ("ami-12c6146b", "t3.micro")
    assert found["IamInstanceProfile"]["Arn"].endswith("instance-profile/nodes")
    assert (found["MetadataOptions"]["HttpTokens"], found["Monitoring"]["State"]) == ("required", "enabled")
    assert [each["Groups"][0]["GroupId"] for each in found["NetworkInterfaces"]] == [group]
    stack.client("iam").create_instance_profile(InstanceProfileName="other")
    own = stack.make(INSTANCE, LaunchTemplate={"LaunchTemplateId": template, "Version": "1"}, **OWN)
    found = described(stack, own)
    assert found["IamInstanceProfile"]["Arn"].endswith("instance-profile/other")
    assert (found["MetadataOptions"]["HttpTokens"], found["Monitoring"]["State"]) == ("optional", "disabled")
    stack.delete(INSTANCE, own)
    stack.delete(INSTANCE, made)
    assert described(stack, made)["State"]["Name"] == "terminated"
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == []
