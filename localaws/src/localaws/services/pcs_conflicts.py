"""Custom settings that PCS takes, and not beside each other.

Source: AWS PCS User Guide, "Custom Slurm settings for AWS PCS clusters", "Configuring hardware topology" (2026).
"""

from collections.abc import Sequence

from localaws.services.service import invalid

Settings = Sequence[dict[str, str]] | None


def check_cluster(field: str, settings: Settings) -> None:
    """The step manager needs Contain of PrologFlags, which is their default; REBOOT_ONLY stands alone."""
    given = {each["parameterName"]: {*map(str.strip, each["parameterValue"].split(","))} for each in settings or ()}
    flags = {flag.lower() for flag in given.get("PrologFlags", ())}
    if "enable_stepmgr" in given.get("SlurmctldParameters", ()) and flags and "contain" not in flags:
        raise invalid(field, "enable_stepmgr requires PrologFlags to be unset or to include Contain.")
    states = given.get("HealthCheckNodeState", set())
    if "REBOOT_ONLY" in states and len(states) > 1:
        raise invalid(field, "HealthCheckNodeState REBOOT_ONLY is mutually exclusive with any other value.")


def check_group(field: str, settings: Settings) -> None:
    """PCS does not know the L3 caches of an instance type."""
    given = {each["parameterName"]: each["parameterValue"] for each in settings or ()}
    if "l3cache_as_socket" in given.get("Parameters", "") and "Sockets" not in given:
        raise invalid(field, "Parameters l3cache_as_socket requires Sockets.")
