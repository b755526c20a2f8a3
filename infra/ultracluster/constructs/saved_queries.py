"""Saved queries of CloudWatch Logs Insights."""

from collections.abc import Iterable, Mapping

from aws_cdk import aws_logs as logs
from constructs import Construct

from ultracluster.constructs.references import expect
from ultracluster.telemetry.log_queries import LogQuery


class SavedQueries(Construct):
    """Queries that the console lists in the folder `name`, each on the log group of its source.

    `log_groups` maps sources to names of log groups. Queries without a log group are left out.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        queries: Iterable[LogQuery],
        log_groups: Mapping[str, str],
    ) -> None:
        super().__init__(scope, id)
        for query in queries:
            expect(query, LogQuery, "queries")
            if query.source in log_groups:
                logs.CfnQueryDefinition(
                    self,
                    query.name.replace(" ", ""),
                    name=f"{name}/{query.name}",
                    query_string=query.text,
                    log_group_names=[log_groups[query.source]],
                )
