"""IAM: AWS's managed policies, and refusals to delete a policy in use or to remove a role that is not there."""

import copy
from typing import Any

from moto.core.config import default_user_config
from moto.iam.exceptions import DeleteConflictException, NotFoundException
from moto.iam.models import IAMBackend
from moto.settings import load_iam_aws_managed_policies

from localaws.services.patching import patch_method

_AWS_POLICIES: dict[str, list[Any]] = {}  # by account


def activate() -> None:
    """Load AWS's managed policies into every new account, and refuse to delete policies in use."""
    default_user_config["iam"]["load_aws_managed_policies"] = True
    patch_method(IAMBackend, "delete_policy", _delete_policy)
    patch_method(IAMBackend, "_init_aws_policies", _init_aws_policies)
    patch_method(IAMBackend, "remove_role_from_instance_profile", _remove_role)


def _init_aws_policies(original: Any, self: Any) -> list[Any]:
    # moto parses all 1,500 policies for each of six partitions at every start and reset, which takes seconds.
    if self.region_name != "aws" or not load_iam_aws_managed_policies():
        return []
    if self.account_id not in _AWS_POLICIES:
        _AWS_POLICIES[self.account_id] = original(self)
    return [copy.copy(policy) for policy in _AWS_POLICIES[self.account_id]]


def _remove_role(original: Any, self: Any, profile_name: str, role_name: str) -> None:
    if self.get_role(role_name) not in self.get_instance_profile(profile_name).roles:
        raise NotFoundException(f"Role {role_name} in Instance Profile {profile_name} cannot be found.")
    original(self, profile_name, role_name)


def _delete_policy(original: Any, self: Any, policy_arn: str) -> Any:
    policy = self.get_policy(policy_arn)
    if policy.attachment_count:
        raise DeleteConflictException("Cannot delete a policy attached to entities.")
    if len(policy.versions) > 1:
        raise DeleteConflictException(
            "This policy has more than one version. Before you delete a policy, you must delete the policy's versions."
        )
    return original(self, policy_arn)
