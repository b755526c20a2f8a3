"""Variables of the dashboards: the menus at their top."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Variable:
    """A menu of label values, of CloudWatch dimension values, or a field for a number."""

    name: str
    label: str
    kind: Literal["query", "cloudwatch", "number"]
    query: str
    """PromQL function label_values, `namespace metric dimension`, or the number's default. ENVIRONMENT is its name."""
    several: bool = True
    """Whether several values, and all, may be chosen."""
    help: str = ""


VARIABLES = {
    variable.name: variable
    for variable in (
        Variable("cluster", "Cluster", "query", 'label_values(up{environment="ENVIRONMENT"}, cluster)', several=False),
        Variable("node_group", "Node group", "query", 'label_values(up{cluster="$cluster"}, node_group)'),
        Variable("node", "Node", "query", 'label_values(up{cluster="$cluster"}, node)', several=False),
        Variable("team", "Team", "query", 'label_values(DCGM_FI_DEV_GPU_UTIL{cluster="$cluster"}, team)'),
        Variable("workload", "Job", "query", 'label_values(DCGM_FI_DEV_GPU_UTIL{cluster="$cluster"}, workload)'),
        Variable(
            "model",
            "Model",
            "query",
            'label_values({__name__=~"vllm:num_requests_running|sglang:num_running_reqs", cluster="$cluster"},'
            " model_name)",
        ),
        Variable(
            "file_system", "File system", "cloudwatch", "AWS/FSx FreeDataStorageCapacity FileSystemId", several=False
        ),
        Variable(
            "gpu_hour",
            "USD per GPU hour",
            "number",
            "5",
            help="What you pay for one GPU for one hour. AWS's prices differ by Region and purchase, so this is"
            " yours to set.",
        ),
    )
}
"""All variables, by name."""
