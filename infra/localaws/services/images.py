"""EC2 without public images: moto makes 1,300 of them, with volume and snapshot, for every Region it touches.

Templates name images by id, and nobody here looks one up; without them a Region is ready in a hundredth of the time.
"""

from moto.ec2.models.amis import AmiBackend

from infra.localaws.services.patching import mend


def activate() -> None:
    """Start Regions without images."""
    mend(AmiBackend, "_load_amis", lambda _original, _self: None)
