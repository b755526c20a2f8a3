"""AWS::CDK::Metadata: the CDK's own usage report. It makes nothing, here as in AWS."""

from ultracluster.localaws.resources import Context, Handler, Properties, Resource, handler


@handler
class Metadata(Handler):
    """The versions of the constructs that a template was made with."""

    type = "AWS::CDK::Metadata"
    supported_properties = frozenset({"Analytics", "Modules"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Give it an id."""
        name = context.physical_name()
        return Resource(name, {"Id": name})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Keep the id."""
        return Resource(physical_id, {"Id": physical_id})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """There is nothing to delete."""
