"""AWS Backup's recovery points of EFS, which moto lacks: those of automatic backups outlive their file system.

Every file system with automatic backups has one recovery point, as after its first day. It carries the tags that the
file system had then. The vault's own policy denies deletion to everybody.

Source: AWS Backup API Reference (2026), ListRecoveryPointsByBackupVault, DeleteRecoveryPoint; AWS Backup Developer
Guide, "Copy tags onto backups"; EFS User Guide, "Backing up EFS file systems" (2026).
"""

import json
import time
from typing import Any
from urllib.parse import parse_qs, unquote, urlparse
from uuid import uuid4

from moto.backup.models import BackupBackend, backup_backends
from moto.backup.urls import url_paths
from moto.core.responses import BaseResponse
from moto.efs.models import FileSystem

VAULT = "aws/efs/automatic-backup-vault"
DAYS = 35
_DAY_SECONDS = 24 * 3600


def record(system: FileSystem) -> None:
    """Adds the recovery point of a file system, once."""
    region, account = system.file_system_arn.split(":")[3:5]
    backend: BackupBackend = backup_backends[account][region]
    points = _points(backend)
    if any(point["ResourceArn"] == system.file_system_arn for point in points.values()):
        return
    now = time.time()
    arn = f"arn:aws:backup:{region}:{account}:recovery-point:{uuid4()}"
    points[arn] = {
        "RecoveryPointArn": arn,
        "BackupVaultName": VAULT,
        "ResourceArn": system.file_system_arn,
        "ResourceType": "EFS",
        "Status": "COMPLETED",
        "CreationDate": now,
        "Lifecycle": {"DeleteAfterDays": DAYS},
        "CalculatedLifecycle": {"DeleteAt": now + DAYS * _DAY_SECONDS},
        "BackupSizeInBytes": 0,
    }
    tags = {tag["Key"]: tag["Value"] for tag in system.info_json()["Tags"]}
    # those of AWS itself cannot be copied
    backend.tag_resource(arn, {key: value for key, value in tags.items() if not key.startswith("aws:")})


def _points(backend: BackupBackend) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = backend.__dict__.setdefault("recovery_points", {})
    return found


def _recovery_points(request: Any, full_url: str, headers: Any) -> Any:
    """GET lists the recovery points of a vault, DELETE deletes one."""
    url = urlparse(full_url)
    vault, _, point = unquote(url.path).partition("/backup-vaults/")[2].partition("/recovery-points")
    response = BaseResponse()
    response.setup_class(request, full_url, headers)
    backend = backup_backends[response.current_account][response.region]
    if vault != VAULT and vault not in backend.vaults:
        return _error(404, "ResourceNotFoundException", f"Backup Vault {vault} not found")
    points = {arn: found for arn, found in _points(backend).items() if found["BackupVaultName"] == vault}
    if request.method == "DELETE":
        denied = f"Explicit deny in the access policy of {vault}: backup:DeleteRecoveryPoint on {point.strip('/')}"
        return _error(403, "AccessDeniedException", denied)
    wanted = parse_qs(url.query).get("resourceType", ["EFS"])
    listed = [found for found in points.values() if found["ResourceType"] in wanted]
    return 200, {"Content-Type": "application/json"}, json.dumps({"RecoveryPoints": listed})


def _error(status: int, code: str, message: str) -> Any:
    headers = {"Content-Type": "application/json", "x-amzn-ErrorType": code}
    return status, headers, json.dumps({"__type": code, "message": message})


def activate() -> None:
    """Adds the path of recovery points, before that of vaults, whose name may hold slashes."""
    others = dict(url_paths)
    url_paths.clear()
    for rest in ("/$", "/(?P<point>.+)$"):
        url_paths["{0}/backup-vaults/(?P<vault>.+)/recovery-points" + rest] = _recovery_points
    url_paths.update(others)
