"""Launch templates: corrections of how moto stores and lists them."""

import re
from typing import Any

from moto.ec2.exceptions import InvalidLaunchTemplateIdNotFound
from moto.ec2.models.launch_templates import LaunchTemplate, LaunchTemplateBackend
from moto.ec2.responses import EC2Response

from ultracluster.localaws.services.patching import patch_method


def activate() -> None:
    """Separate a template's own tags from its data, list all templates, refuse unknown ids."""
    patch_method(LaunchTemplate, "create_version", _create_version)
    LaunchTemplate.tags = property(lambda self: self.get_tags(), lambda _self, _tags: None)
    patch_method(LaunchTemplateBackend, "describe_launch_templates", _describe)
    patch_method(EC2Response, "describe_launch_templates", _list_all)
    patch_method(EC2Response, "describe_launch_template_versions", _list_all)


def is_mime_multipart(user_data: bytes) -> bool:
    """Whether user data is MIME multipart, the only form to which a service can add its own part."""
    return re.search(rb"^content-type:\s*multipart/", user_data, re.IGNORECASE | re.MULTILINE) is not None


def _create_version(original: Any, self: Any, data: dict[str, Any], description: str) -> Any:
    # moto mixes the tags of the template with TagSpecifications for launched resources.
    launched = [spec for spec in data.pop("TagSpecifications", []) if spec["ResourceType"] != "launch-template"]
    return original(self, {**data, "TagSpecifications": launched} if launched else data, description)


def _describe(
    original: Any, self: Any, template_names: Any = None, template_ids: Any = None, filters: Any = None
) -> Any:
    for template_id in template_ids or []:
        if template_id not in self.launch_templates:
            raise InvalidLaunchTemplateIdNotFound(template_id)
    return original(self, template_names, template_ids, filters)


def _list_all(original: Any, self: Any) -> Any:
    # moto returns 15 at most, without a token. Here one response holds all templates and versions.
    self.params = {**self.params, "MaxResults": self._get_int_param("MaxResults", 1000)}
    return original(self)
