"""AWS::Logs::QueryDefinition."""

from ultracluster.localaws.handlers.logs import require_log_group
from ultracluster.localaws.resources import Context, Handler, Properties, Resource, handler


@handler
class QueryDefinition(Handler):
    """AWS::Logs::QueryDefinition: a saved query of Logs Insights. Ref gives its id."""

    type = "AWS::Logs::QueryDefinition"
    supported_properties = frozenset({"LogGroupNames", "Name", "QueryString"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Save the query."""
        return self._put(context, {}, properties)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Replace the query."""
        return self._put(context, {"queryDefinitionId": physical_id}, new)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the query."""
        context.client("logs").delete_query_definition(queryDefinitionId=physical_id)

    def _put(self, context: Context, which: dict[str, str], properties: Properties) -> Resource:
        for group in properties.get("LogGroupNames", ()):
            require_log_group(context, group)
        made = context.client("logs").put_query_definition(
            **which,
            name=properties["Name"],
            queryString=properties["QueryString"],
            **({"logGroupNames": properties["LogGroupNames"]} if properties.get("LogGroupNames") else {}),
        )
        return Resource(made["queryDefinitionId"], {"QueryDefinitionId": made["queryDefinitionId"]})
