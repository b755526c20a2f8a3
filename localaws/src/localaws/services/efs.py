"""EFS actions that moto lacks: changes of throughput, backups and protection; and what EFS refuses.

Source: EFS API Reference (2026): CreateFileSystem, CreateMountTarget, CreateAccessPoint, UpdateFileSystem.
"""

import json
from typing import Any

from moto.efs.exceptions import BadRequest, FileSystemNotFound
from moto.efs.models import EFSBackend, FileSystem
from moto.efs.responses import EFSResponse
from moto.efs.urls import url_paths

from localaws.services.backup import record
from localaws.services.given import instead_of
from localaws.services.patching import add, patch
from localaws.services.references import References

_JSON = {"Content-Type": "application/json"}


def activate() -> None:
    """Add a path, and the backup policy as it was put."""
    url_paths["/2015-02-01/file-systems/<file_system_id>/protection"] = url_paths["/2015-02-01/file-systems"]
    FileSystem.backup_policy = property(lambda self: self._backup_policy)


@patch(FileSystem, "__init__")
def _init(original: Any, self: Any, account_id: str, region_name: str, *args: Any, backup: bool, **given: Any) -> None:
    zone, key = given["availability_zone_name"], given["kms_key_id"]
    _check_throughput(given["throughput_mode"], given["provisioned_throughput_in_mibps"], given["performance_mode"])
    if zone and given["performance_mode"] == "maxIO":
        raise BadRequest("One Zone file systems do not support the maxIO performance mode.")
    original(self, account_id, region_name, *args, backup=backup, **given)
    if self.encrypted:
        found = References(account_id, region_name).key(key or "alias/aws/elasticfilesystem")
        if found is None:
            raise BadRequest(f"KMS key {key} does not exist.")
        self.kms_key_id = found.arn
    self._backup_policy = {"Status": "ENABLED"} if self._backup else None
    self.file_system_protection = {"ReplicationOverwriteProtection": "ENABLED"}


def _check_throughput(mode: str | None, provisioned: float | None, performance: str) -> None:
    if (mode == "provisioned") != bool(provisioned):
        raise BadRequest("ProvisionedThroughputInMibps is required with ThroughputMode provisioned, and only with it.")
    if mode == "elastic" and performance == "maxIO":
        raise BadRequest("ThroughputMode elastic needs the generalPurpose performance mode.")


@patch(EFSBackend, "create_file_system")
def _create_file_system(original: Any, self: Any, *args: Any, **given: Any) -> Any:
    made = original(self, *args, **given)
    old, new = made.file_system_id, instead_of(made.file_system_id)
    if new != old:
        tags = self.tagging_service.list_tags_for_resource(old)["Tags"]
        self.tagging_service.tag_resource(new, tags)
        made.file_system_id = new
        self.file_systems_by_id[new] = self.file_systems_by_id.pop(old)
    return made


@patch(EFSBackend, "create_mount_target")
def _create_mount_target(original: Any, self: Any, *args: Any, **given: Any) -> Any:
    """Without groups, a mount target has the default group of its VPC; with them, they are of its VPC."""
    references = References(self.account_id, self.region_name)
    subnet = references.subnet(given["subnet_id"])
    if subnet is not None and not given.get("security_groups"):
        given["security_groups"] = [references.default_security_group(subnet.vpc_id).id]
    for group_id in given.get("security_groups") or ():
        group = references.security_group(group_id)
        if group is not None and subnet is not None and group.vpc_id != subnet.vpc_id:
            raise BadRequest(f"Security group {group_id} is not in the VPC of {subnet.id}.")
    return original(self, *args, **given)


@patch(EFSBackend, "create_access_point")
def _create_access_point(original: Any, self: Any, client_token: str, **given: Any) -> Any:
    if given["file_system_id"] not in self.file_systems_by_id:
        raise FileSystemNotFound(given["file_system_id"])
    return original(self, client_token, **given)


def _file_system(self: Any) -> Any:
    file_system_id = self._get_param("FileSystemId")
    return self.efs_backend.describe_file_systems(file_system_id=file_system_id)[1][0]


@add(EFSResponse, "update_file_system")
def _update_file_system(self: Any) -> Any:
    found = _file_system(self)
    mode = self._get_param("ThroughputMode") or found.throughput_mode
    provisioned = self._get_param("ProvisionedThroughputInMibps")
    if mode == "provisioned":
        provisioned = provisioned or found.provisioned_throughput_in_mibps
    _check_throughput(mode, provisioned, found.performance_mode)
    found.throughput_mode, found.provisioned_throughput_in_mibps = mode, provisioned
    return json.dumps(found.info_json()), {"status": 202, **_JSON}


@add(EFSResponse, "put_backup_policy")
def _put_backup_policy(self: Any) -> Any:
    found = _file_system(self)
    found._backup_policy = self._get_param("BackupPolicy")
    if found._backup_policy["Status"] == "ENABLED":
        record(found)
    return json.dumps({"BackupPolicy": found.backup_policy}), _JSON


@add(EFSResponse, "delete_file_system_policy")
def _delete_file_system_policy(self: Any) -> Any:
    _file_system(self).file_system_policy = None
    return "{}", _JSON


@add(EFSResponse, "update_file_system_protection")
def _update_file_system_protection(self: Any) -> Any:
    found = _file_system(self)
    found.file_system_protection = {"ReplicationOverwriteProtection": self._get_param("ReplicationOverwriteProtection")}
    return json.dumps(found.file_system_protection), _JSON
