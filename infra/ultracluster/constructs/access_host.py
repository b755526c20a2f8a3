"""The access host: a small instance that people reach through Session Manager."""

import hashlib
from collections.abc import Sequence

from aws_cdk import CfnTag, Fn
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from ultracluster.config.access import Host
from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.launch_templates import SESSION_MANAGER_ACTIONS, ami_reference, cpu_architecture
from ultracluster.constructs.references import SecurityGroup, Subnet, Vpc, expect, security_group_id, subnet_id, vpc_id
from ultracluster.constructs.roles import managed_policy, trust_policy
from ultracluster.constructs.security_groups import Ports, allow, security_group
from ultracluster.nodes.steps import Step
from ultracluster.nodes.users import host_user_data

IMAGE_PARAMETER = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{architecture}"
"""Newest image of Amazon Linux 2023, with the Systems Manager agent and the AWS CLI (AL2023 User Guide, 2026)."""

ROOT_DEVICE, ROOT_VOLUME_GIB = "/dev/xvda", 16

ACCEPTED = {
    "AwsSolutions-EC28": "Detailed monitoring tells nothing about a host that only forwards connections.",
    "AwsSolutions-EC29": "The host keeps nothing: a new one replaces it whenever its image or its boot script changes.",
}


class AccessHost(Construct):
    """An instance of Amazon Linux 2023 in a private subnet: IMDSv2, an encrypted root volume, no open port.

    People reach it through Session Manager, which needs a NAT gateway or the interface endpoints ssm and ssmmessages.
    Its security group reaches any address; `allow_to` opens another group to it. It runs `steps` at its first boot.
    It keeps nothing: another image, type or boot script replaces it.
    """

    security_group_id: str
    """Id of the security group of the host."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Host,
        vpc: Vpc,
        subnet: Subnet,
        name: str,
        steps: Sequence[Step] = (),
    ) -> None:
        super().__init__(scope, id)
        expect(settings, Host, "settings")
        # not AmazonSSMManagedInstanceCore, which reads every parameter of the account
        own = managed_policy(
            self,
            "Policy",
            roles=[],  # the role names the policy, so that whatever depends on the role depends on its permissions
            statements=[{"Action": list(SESSION_MANAGER_ACTIONS), "Resource": "*"}],
            accepted={"AwsSolutions-IAM5[Resource::*]": "these actions take no resource"},
        )
        self._role = iam.CfnRole(
            self,
            "Role",
            assume_role_policy_document=trust_policy("ec2.amazonaws.com"),
            description="Access host",
            managed_policy_arns=[own.ref],
        )
        self.security_group_id = security_group(self, "Group", vpc_id=vpc_id(vpc), description="Access host")
        ec2.CfnSecurityGroupEgress(
            self,
            "Anywhere",
            group_id=self.security_group_id,
            ip_protocol="-1",
            cidr_ip="0.0.0.0/0",
            description="To any address",
        )
        profile = iam.CfnInstanceProfile(self, "Profile", roles=[self._role.ref])
        architecture = cpu_architecture(settings.instance_type)
        # CloudFormation changes user data in place, and an instance runs them once
        version = hashlib.sha256(" ".join(each.script.checksum for each in steps).encode()).hexdigest()[:8]
        self._instance = ec2.CfnInstance(
            self,
            f"Instance{version if steps else ''}",
            image_id=ami_reference("ssm:" + IMAGE_PARAMETER.format(architecture=architecture)),
            instance_type=settings.instance_type,
            subnet_id=subnet_id(subnet),
            security_group_ids=[self.security_group_id],
            iam_instance_profile=profile.ref,
            block_device_mappings=[
                {
                    "deviceName": ROOT_DEVICE,
                    "ebs": {
                        "volumeSize": ROOT_VOLUME_GIB,
                        "volumeType": "gp3",
                        "encrypted": True,
                        "deleteOnTermination": True,
                    },
                }
            ],
            metadata_options={"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1},
            tags=[CfnTag(key="Name", value=name)],
            user_data=Fn.base64(host_user_data(steps)) if steps else None,
        )
        acknowledge(self._instance, ACCEPTED)

    def allow_to(self, group: SecurityGroup, id: str, *, ports: Ports, description: str) -> None:
        """Lets the host connect to members of `group` on `ports`, by rules whose ids begin with `id`."""
        target = security_group_id(group)
        allow(self, id, source=self.security_group_id, target=target, ports=ports, description=description)

    def wait_for(self, *constructs: IConstruct) -> None:
        """Launches the instance after `constructs`, such as the policy with which it reads a list of users."""
        self._instance.node.add_dependency(*constructs)

    @property
    def instance_id(self) -> str:
        """Id of the instance."""
        return self._instance.ref

    @property
    def role(self) -> iam.CfnRole:
        """Role of the instance."""
        return self._role
