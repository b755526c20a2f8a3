"""EFA: traffic against line rate, and alerts on missing devices and on errors of the network."""

from collections.abc import Iterator

from ultracluster.telemetry.rules.catalogue import EFA_DEVICES, EFA_LINE_RATE
from ultracluster.telemetry.rules.expressions import collected
from ultracluster.telemetry.rules.model import CLUSTER, NODE, Alert, Group, Recording
from ultracluster.telemetry.rules.site import Site
from ultracluster.telemetry.thresholds import EFA_EVENTS, EFA_RETRANSMITS, Threshold

_WHERE = "{{ $labels.node }} ({{ $labels.instance_type }})"


def group(site: Site) -> Group:
    """Recorded traffic, and alerts."""
    return Group("efa", (*_traffic(site), *_missing(site), *_errors(site)))


def _traffic(site: Site) -> Iterator[Recording]:
    for way in ("tx", "rx"):
        rate = f"rate(node_amazonefa_{way}_bytes[{site.window(5)}])"
        yield Recording(f"node:efa_{way}_bits:rate", f"8 * sum by ({NODE}) ({rate})")
        yield Recording(
            f"node:efa_{way}_line_rate:ratio",
            f"node:efa_{way}_bits:rate\n/ on (instance_type) group_left ()\n{EFA_LINE_RATE}",
        )


def _missing(site: Site) -> Iterator[Alert]:
    if not site.efa_groups:
        return
    groups = f'node_group=~"{"|".join(site.efa_groups)}"'
    active = f"count by ({NODE}) (node_amazonefa_port_state{{{groups}}} == 4)"
    none = f'max by ({NODE}) (up{{job="node", {groups}}} == 1) * 0'
    known = f"and on ({CLUSTER}, node)\n{collected('efa')}"
    yield Alert(
        name="EfaDeviceMissing",
        expr=f"({active}\nor\n{none})\n< on (instance_type) group_left ()\n{EFA_DEVICES}\n{known}",
        severity="critical",
        component="efa",
        scope="node",
        sustained="10m",
        keep="10m",
        repair="replace",
        summary=f"Only {{{{ $value }}}} active EFA devices on {_WHERE}",
        description="The node has fewer EFA devices with an active port than its instance type has. NCCL runs at the "
        "speed of the node with the fewest devices, or fails. A node without EFA metrics is not judged.",
        action="Drain the node and look for the device with `fi_info -p efa` and `lspci`.",
    )


def _errors(site: Site) -> Iterator[Alert]:
    # name, counters, limit, what happened, what it means, first step
    kinds: tuple[tuple[str, tuple[str, ...], Threshold, str, str, str], ...] = (
        (
            "EfaRetransmitTimeouts",
            ("retrans_timeout_events",),
            EFA_EVENTS,
            "retransmission timeouts",
            "Packets got no acknowledgement in time, so traffic moved to other paths.",
            "Compare with other nodes: one node points to its cards, many to the network.",
        ),
        (
            "EfaUnresponsiveRemote",
            ("unresponsive_remote_events",),
            EFA_EVENTS,
            "times without an answer of a remote node",
            "A peer of the node crashed, was terminated or cannot be reached.",
            "Find the peer: a node of the same job that is down or silent.",
        ),
        (
            "EfaImpairedConnections",
            ("impaired_remote_conn_events",),
            EFA_EVENTS,
            "impaired connections",
            "Connections to remote nodes have a high share of timeouts.",
            "Compare with other nodes of the job, and drain the one that all others complain about.",
        ),
        (
            "EfaReceiveDrops",
            ("rx_drops",),
            EFA_EVENTS,
            "dropped packets",
            "The node received packets faster than it took them.",
            "Look for a host that is short of CPU or PCIe bandwidth.",
        ),
        (
            "EfaRdmaErrors",
            ("rdma_read_wr_err", "rdma_write_wr_err"),
            EFA_EVENTS,
            "failed RDMA requests",
            "RDMA reads or writes completed with an error. The job sees errors of libfabric or hangs.",
            "Look at the log of the job for errors of the provider efa.",
        ),
        (
            "EfaRetransmits",
            ("retrans_pkts",),
            EFA_RETRANSMITS,
            "retransmitted packets",
            "Packets were lost. The job goes on, at less bandwidth.",
            "Compare with other nodes: one node points to its cards, many to the network.",
        ),
    )
    for name, counters, limit, what, meaning, action in kinds:
        grown = (f"max by ({NODE}) (increase(node_amazonefa_{counter}[{site.window(5)}]))" for counter in counters)
        yield Alert(
            name=name,
            expr="\nor\n".join(f"{each}\n> {limit.value}" for each in grown),
            severity="warning",
            component="efa",
            scope="node",
            sustained="5m",
            keep="5m",
            summary=f"{{{{ $value | humanize }}}} {what} in five minutes on {_WHERE}",
            description=f"{meaning} The value is that of the worst EFA device of the node.",
            action=action,
        )
