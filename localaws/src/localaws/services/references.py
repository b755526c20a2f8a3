"""Look-ups in moto's services of the resources that a request refers to. A missing resource is None."""

import json
from typing import Any, NamedTuple

from moto.backends import get_backend
from moto.core.exceptions import ServiceException
from werkzeug.exceptions import HTTPException

from localaws.services.capacity import Reservation, reservations_of

_NOT_THERE = (ServiceException, HTTPException, KeyError)


class References(NamedTuple):
    """The other services in one account and Region."""

    account: str
    region: str
    partition: str = "aws"

    def subnet(self, subnet_id: str) -> Any:
        """The subnet of this id."""
        return _found(lambda: self.backend("ec2").get_subnet(subnet_id))

    def security_group(self, group_id: str) -> Any:
        """The security group of this id."""
        return self.backend("ec2").get_security_group_from_id(group_id)

    def default_security_group(self, vpc_id: str) -> Any:
        """The default security group of a VPC."""
        return self.backend("ec2").get_security_group_from_name("default", vpc_id)

    def launch_template(self, template_id: str) -> Any:
        """The launch template of this id."""
        return _found(lambda: self.backend("ec2").get_launch_template(template_id))

    def launch_template_named(self, name: str) -> Any:
        """The launch template of this name."""
        return _found(lambda: self.backend("ec2").get_launch_template_by_name(name))

    def vpc_endpoint(self, endpoint_id: str) -> Any:
        """The VPC endpoint of this id."""
        return self.backend("ec2").vpc_end_points.get(endpoint_id)

    def prefix_list(self, prefix_list_id: str) -> Any:
        """The managed prefix list of this id."""
        return self.backend("ec2").managed_prefix_lists.get(prefix_list_id)

    def network_interface(self, subnet: Any, group_ids: list[str], description: str) -> Any:
        """Create a service's network interface in the customer's subnet."""
        return self.backend("ec2").create_network_interface(subnet, [], group_ids=group_ids, description=description)

    def delete_network_interface(self, interface_id: str) -> None:
        """Delete a service's network interface, if it exists."""
        self.backend("ec2").enis.pop(interface_id, None)

    def capacity_reservation(self, reservation_id: str) -> Reservation | None:
        """The capacity reservation or Capacity Block of this id, as EC2 describes it."""
        return reservations_of(self.backend("ec2")).get(reservation_id)

    def new_secret(self, name: str, value: str) -> dict[str, str]:
        """Create a service's secret in the customer's account. Returns its ARN and VersionId."""
        store = self.backend("secretsmanager")
        rest = dict.fromkeys(("secret_binary", "description", "tags", "kms_key_id", "client_request_token"))
        made = store.create_secret(name, secret_string=value, replica_regions=[], force_overwrite=False, **rest)
        answer: dict[str, str] = json.loads(made)
        return answer

    def delete_secret(self, arn: str) -> None:
        """Delete a service's secret without a recovery window."""
        self.backend("secretsmanager").delete_secret(arn, None, force_delete_without_recovery=True)

    def instance_profile(self, arn: str) -> Any:
        """The instance profile of this ARN."""
        profiles = self.backend("iam").instance_profiles.values()
        return next((profile for profile in profiles if profile.arn == arn), None)

    def role(self, arn: str) -> Any:
        """The role of this ARN."""
        return next((role for role in self.backend("iam").roles.values() if role.arn == arn), None)

    def key(self, key_id: str) -> Any:
        """The KMS key of this id, ARN, alias or alias ARN."""
        kms = self.backend("kms")
        alias = kms.get_alias_name(key_id)
        key = kms.keys.get(kms.get_key_id_from_alias(alias) if alias.startswith("alias/") else kms.get_key_id(key_id))
        elsewhere = (
            key_id.startswith("arn:") and key is not None and f":kms:{self.region}:{self.account}:" not in key_id
        )
        return None if elsewhere else key

    def default_key_arn(self, alias: str) -> str:
        """The ARN of a service's AWS managed key (alias/aws/...), created on first use."""
        return str(self.key(alias).arn)

    def bucket(self, name: str) -> Any:
        """The bucket of this name, in any Region."""
        return _found(lambda: self.backend("s3").get_bucket(name))

    def log_group(self, arn: str) -> Any:
        """The log group of this ARN, with or without its ":*", if it is in this account and Region."""
        prefix = f"arn:{self.partition}:logs:{self.region}:{self.account}:log-group:"
        if not arn.startswith(prefix):
            return None
        return self.backend("logs").groups.get(arn.removeprefix(prefix).removesuffix(":*"))

    def backend(self, service: str) -> Any:
        """Moto's backend of a service."""
        backends = get_backend(service)[self.account]
        return backends[self.partition if service in ("iam", "s3") else self.region]


def _found(look: Any) -> Any:
    try:
        return look()
    except _NOT_THERE:
        return None
