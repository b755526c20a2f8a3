"""Teams that share a PCS cluster: Slurm accounts with a fair share, a QOS and a limit of GPUs."""

from collections.abc import Collection, Iterator
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config import cluster_effects
from ultracluster.config.fields import Many, text
from ultracluster.config.problems import Problem, repeated, rule
from ultracluster.config.settings import Settings
from ultracluster.config.users import UserName

Qos = Literal["high", "normal", "low"]
QOS: tuple[Qos, ...] = ("high", "normal", "low")
"""QOS of teams; each preempts those after it."""

RESERVED_ACCOUNTS = frozenset({"root", "all"})
"""root is the account above all others; ALL in AllowAccounts of a partition means every account (slurm.conf man page).
"""


class SlurmTeam(Settings):
    """A Slurm account with a fair share of the fleet.

    Jobs of a team that has recently used less than its fair share start first. Jobs of a higher `qos` start before all
    others, and may preempt jobs of a lower one, which are requeued.
    """

    name: Annotated[
        str,
        text(
            r"^[a-z]([a-z0-9-]{0,28}[a-z0-9])?$",
            "a name of up to 30 lower-case letters, digits and hyphens that starts with a letter",
        ),
        cluster_effects.ACCOUNT_NAME,
    ]
    """Name of the team and of its account."""
    fairshare: Annotated[int, Field(ge=1, le=100_000), cluster_effects.ACCOUNT_KEY] = 1
    """Share of the fleet, in proportion to the shares of all teams."""
    qos: Annotated[Qos, cluster_effects.ACCOUNT_KEY] = "normal"
    """QOS of the team's jobs, unless a job asks for a lower one."""
    max_gpus: Annotated[Annotated[int, Field(ge=1)] | None, cluster_effects.ACCOUNT_KEY] = None
    """GPUs that the team's running jobs have at most, together. Default: no limit."""
    node_groups: Annotated[Many[str], cluster_effects.ACCOUNT_KEY] = ()
    """Node groups for the team's jobs: it may use the queues that have no other groups. Default: all."""
    members: Annotated[Many[UserName], cluster_effects.ACCOUNT_KEY] = ()
    """Login names of users who may submit jobs of the team. Without any, people add members with sacctmgr."""

    @property
    def allowed_qos(self) -> tuple[Qos, ...]:
        """QOS that jobs of the team may have: its own, the first, and lower ones."""
        return QOS[QOS.index(self.qos) :]

    def may_use(self, node_groups: Collection[str]) -> bool:
        """Whether the team may use a queue over `node_groups`."""
        return not self.node_groups or set(node_groups) <= set(self.node_groups)

    @rule
    def _name_is_free(self) -> Iterator[Problem]:
        if self.name in RESERVED_ACCOUNTS:
            message = f"{self.name} is reserved by Slurm"
            yield Problem("team-name-reserved", "name", message, f"set name: team-{self.name}")

    @rule
    def _distinct_names(self) -> Iterator[Problem]:
        yield from repeated("node_groups", self.node_groups)
        yield from repeated("members", self.members)
