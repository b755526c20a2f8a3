"""AWS::CDK::Metadata, the CDK's usage report. It creates nothing, as in AWS, and keeps its id when it changes."""

from localaws.rows.handler import register
from localaws.rows.row import Row

register(
    Row(
        type="AWS::CDK::Metadata",
        service="",
        properties="Analytics Modules",
        name=("Id", 64),
        create=None,
        delete=None,
        ref="{Id}",
        tags=None,
        by_hand="Analytics Modules",
    )
)
