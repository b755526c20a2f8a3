"""The collectors of EFA and Lustre metrics, run on a fake machine with a fake sysfs and a fake lctl."""

import re

import pytest

from ultracluster.nodes.collectors import TEXTFILE_FOLDER, collector_steps
from ultracluster.telemetry.metrics import metrics_of

PORT_COUNTERS = """
tx_bytes tx_pkts rx_bytes rx_pkts rx_drops send_bytes send_wrs recv_bytes recv_wrs rdma_read_wrs rdma_read_bytes
rdma_read_wr_err rdma_read_resp_bytes rdma_write_wrs rdma_write_bytes rdma_write_wr_err rdma_write_recv_bytes
retrans_bytes retrans_pkts retrans_timeout_events unresponsive_remote_events impaired_remote_conn_events
"""
"""Port counters of the EFA driver (amzn/amzn-drivers, kernel/linux/efa/src/efa_verbs.c, May 2026)."""

DEVICE_COUNTERS = """
submitted_cmds completed_cmds cmds_err no_completion_cmds keep_alive_rcvd alloc_pd_err create_qp_err create_cq_err
reg_mr_err alloc_ucontext_err create_ah_err mmap_err
"""
"""Device counters of the EFA driver."""

PARAMETERS = """\
llite.abcdefgh-ffff9c2a41b0e000.stats=
snapshot_time             1784728000.123456789 secs.nsecs
start_time                1784700000.123456789 secs.nsecs
elapsed_time              28000.000000000 secs.nsecs
read_bytes                62 samples [bytes] 4096 1048576 54534144 57182423777280
write_bytes               7 samples [bytes] 100 700 2800 1400000
open                      123 samples [usecs] 10 200 3000 90000
close                     122 samples [usecs] 10 200 3000 90000
llite.abcdefgh-ffff9c2a41b0e000.kbytestotal=9663676416
llite.abcdefgh-ffff9c2a41b0e000.kbytesfree=9000000000
llite.abcdefgh-ffff9c2a41b0e000.kbytesavail=8900000000
llite.abcdefgh-ffff9c2a41b0e000.filestotal=50000000
llite.abcdefgh-ffff9c2a41b0e000.filesfree=49999000
mdc.abcdefgh-MDT0000-mdc-ffff9c2a41b0e000.import=
import:
    name: abcdefgh-MDT0000-mdc-ffff9c2a41b0e000
    target: abcdefgh-MDT0000_UUID
    state: FULL
    connect_flags: [ write_grant, server_lock ]
    connection:
       failover_nids: [ 10.0.1.2@tcp ]
       current_connection: 10.0.1.2@tcp
osc.abcdefgh-OST0000-osc-ffff9c2a41b0e000.import=
import:
    name: abcdefgh-OST0000-osc-ffff9c2a41b0e000
    target: abcdefgh-OST0000_UUID
    state: IDLE
    connection:
       current_connection: 10.0.1.3@tcp1
osc.abcdefgh-OST0001-osc-ffff9c2a41b0e000.import=
import:
    name: abcdefgh-OST0001-osc-ffff9c2a41b0e000
    target: abcdefgh-OST0001_UUID
    state: DISCONN
"""
"""Answer of lctl get_param of a Lustre 2.15 client (Lustre manual, "Monitoring", "Import state")."""

NETWORKS = """\
net:
    - net type: lo
      local NI(s):
        - nid: 0@lo
          status: up
          statistics:
              send_count: 5
              recv_count: 5
              drop_count: 0
    - net type: tcp
      local NI(s):
        - nid: 10.1.128.9@tcp
          status: up
          interfaces:
              0: ens33
          statistics:
              send_count: 40
              recv_count: 39
              drop_count: 1
    - net type: efa
      local NI(s):
        - nid: 10.1.128.9@efa
          status: up
          statistics:
              send_count: 1000
              recv_count: 1001
              drop_count: 0
        - nid: 10.1.128.10@efa
          status: up
          statistics:
              send_count: 2000
              recv_count: 2002
              drop_count: 3
"""


def collect(machine, step, **fakes):
    """Runs the step, then once what its timer starts; returns samples by name and labels, and the types by name."""
    ran = machine.run(step, **fakes)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert machine.systemctl("start", f"{step.name}.service") == 0
    text = machine.read(f"{TEXTFILE_FOLDER[1:]}/{step.name.removeprefix('collect-')}.prom")
    samples = dict(re.findall(r"^([a-z_]+\{[^}]*\}) (\d+)$", text, re.M))
    types = dict(re.findall(r"^# TYPE ([a-z_]+) (\w+)$", text, re.M))
    comments = len(re.findall("^# ", text, re.M))
    assert len(samples) + comments == len(text.splitlines()), text
    assert {key.partition("{")[0] for key in samples} <= set(types)
    return samples, types


def device(machine, name, *, vendor="0x1d0f", counters=True, value=1):
    folder = f"sys/class/infiniband/{name}"
    machine.write(f"{folder}/device/vendor", f"{vendor}\n")
    machine.write(f"{folder}/ports/1/state", "4: ACTIVE\n")
    if counters:
        for counter in DEVICE_COUNTERS.split():
            machine.write(f"{folder}/hw_counters/{counter}", f"{value}\n")
        for counter in (*PORT_COUNTERS.split(), "lifespan"):
            machine.write(f"{folder}/ports/1/hw_counters/{counter}", f"{value}\n")


def efa_step():
    (step,) = collector_steps(efa=True, lustre=False, seconds=15)
    return step


def lustre_step(**mount):
    (step,) = collector_steps(efa=False, lustre=True, seconds=15, **mount)
    return step


def test_a_node_collects_what_it_has():
    assert [step.name for step in collector_steps(efa=True, lustre=True, seconds=15)] == [
        "collect-efa",
        "collect-lustre",
    ]
    assert collector_steps(efa=False, lustre=False, seconds=15) == []


def test_a_failed_collector_does_not_keep_a_node_from_jobs():
    assert not any(step.required for step in collector_steps(efa=True, lustre=True, seconds=15))


@pytest.mark.parametrize("step", collector_steps(efa=True, lustre=True, seconds=15), ids=lambda step: step.name)
def test_a_timer_collects_at_the_interval(machine, step):
    machine.run(step)
    assert "OnUnitActiveSec=15s" in machine.unit(f"{step.name}.timer")
    assert machine.systemctl("is-active", f"{step.name}.timer") == 0
    machine.reboot()
    assert machine.systemctl("is-active", f"{step.name}.timer") == 0


# EFA


def test_every_counter_of_every_device_is_written(machine):
    device(machine, "rdmap16s27", value=7)
    device(machine, "rdmap32s27", value=18446744073709551615)
    samples, types = collect(machine, efa_step())
    for counter in PORT_COUNTERS.split():
        assert samples[f'node_amazonefa_{counter}{{device="rdmap16s27",port="1"}}'] == "7"
        assert samples[f'node_amazonefa_{counter}{{device="rdmap32s27",port="1"}}'] == "18446744073709551615"
        assert types[f"node_amazonefa_{counter}"] == "counter"
    assert samples['node_amazonefa_cmds_err{device="rdmap16s27"}'] == "7"
    assert samples['node_amazonefa_info{device="rdmap16s27"}'] == "1"
    assert samples['node_amazonefa_port_state{device="rdmap32s27",port="1"}'] == "4"


def test_names_have_no_suffix_and_the_caches_lifetime_is_no_counter(machine):
    device(machine, "rdmap16s27")
    samples, _ = collect(machine, efa_step())
    assert not [name for name in samples if "_total" in name or "lifespan" in name or "submitted" in name]


def test_devices_of_other_vendors_are_not_counted(machine):
    device(machine, "mlx5_0", vendor="0x15b3")
    device(machine, "rdmap16s27")
    samples, _ = collect(machine, efa_step())
    assert not [name for name in samples if "mlx5_0" in name]
    assert len([name for name in samples if "_info" in name]) == 1


def test_a_node_that_lost_its_devices_reports_none(machine):
    samples, types = collect(machine, efa_step())
    assert samples == {}
    assert types["node_amazonefa_info"] == "gauge"


def test_a_device_whose_counters_cannot_be_read_still_counts(machine):
    device(machine, "rdmap16s27", counters=False)
    device(machine, "rdmap32s27")
    (machine.root / "sys/class/infiniband/rdmap32s27/ports/1/hw_counters/tx_bytes").unlink()
    (machine.root / "sys/class/infiniband/rdmap32s27/ports/1/hw_counters/tx_bytes").mkdir()
    samples, _ = collect(machine, efa_step())
    assert len([name for name in samples if "_info" in name]) == 2
    assert not [name for name in samples if "_tx_bytes" in name]
    assert samples['node_amazonefa_rx_bytes{device="rdmap32s27",port="1"}'] == "1"


def test_a_collection_that_fails_leaves_the_last_one(machine):
    device(machine, "rdmap16s27", value=1)
    collect(machine, efa_step())
    before = machine.read(f"{TEXTFILE_FOLDER[1:]}/efa.prom")
    machine.write(f"{TEXTFILE_FOLDER[1:]}/efa.new/occupied", "")
    assert machine.systemctl("start", "collect-efa.service") != 0
    assert machine.read(f"{TEXTFILE_FOLDER[1:]}/efa.prom") == before


# Lustre


def lustre(parameters=PARAMETERS, networks=NETWORKS):
    return {
        "lctl": f"cat <<'END'\n{parameters}END",
        "lnetctl": f'[ "$*" = "net show --verbose" ] && cat <<\'END\'\n{networks}END',
    }


def test_traffic_capacity_and_operations_of_a_mount(machine):
    samples, types = collect(machine, lustre_step(), **lustre())
    assert samples['lustre_read_bytes_total{target="abcdefgh"}'] == "54534144"
    assert samples['lustre_read_samples_total{target="abcdefgh"}'] == "62"
    assert samples['lustre_write_bytes_total{target="abcdefgh"}'] == "2800"
    assert samples['lustre_stats_total{target="abcdefgh",operation="open"}'] == "123"
    assert samples['lustre_capacity_kibibytes{target="abcdefgh"}'] == "9663676416"
    assert samples['lustre_available_kibibytes{target="abcdefgh"}'] == "8900000000"
    assert samples['lustre_inodes_free{target="abcdefgh"}'] == "49999000"
    assert types["lustre_read_bytes_total"] == "counter"
    assert types["lustre_capacity_kibibytes"] == "gauge"


def test_a_connection_that_is_closed_while_unused_is_healthy(machine):
    samples, _ = collect(machine, lustre_step(), **lustre())
    states = {key: value for key, value in samples.items() if key.startswith("lustre_import_full")}
    assert states == {
        'lustre_import_full{target="abcdefgh",server="MDT0000"}': "1",
        'lustre_import_full{target="abcdefgh",server="OST0000"}': "1",
        'lustre_import_full{target="abcdefgh",server="OST0001"}': "0",
    }


def network_of_data(machine, networks=NETWORKS):
    samples, _ = collect(machine, lustre_step(), **lustre(networks=networks))
    return {key.partition("{")[2] for key in samples if key.startswith("lustre_import_network")}


def test_data_goes_over_efa_if_lnet_sends_over_it_though_connections_have_the_address_of_tcp(machine):
    assert network_of_data(machine) == {'target="abcdefgh",server="OST0000",network="efa"}'}


@pytest.mark.parametrize(
    "change",
    [("@efa\n          status: up", "@efa\n          status: down"), ("send_count: 1000", "send_count: 0"), None],
)
def test_a_client_that_sends_nothing_over_efa_uses_tcp(machine, change):
    networks = NETWORKS.split("    - net type: efa")[0]
    if change:
        networks = NETWORKS.replace(*change).replace("send_count: 2000", "send_count: 0")
    assert network_of_data(machine, networks) == {'target="abcdefgh",server="OST0000",network="tcp"}'}


def test_messages_are_counted_by_network_over_all_interfaces(machine):
    samples, _ = collect(machine, lustre_step(), **lustre())
    assert samples['lustre_lnet_send_messages_total{network="tcp"}'] == "40"
    assert samples['lustre_lnet_send_messages_total{network="efa"}'] == "3000"
    assert samples['lustre_lnet_receive_messages_total{network="efa"}'] == "3003"
    assert samples['lustre_lnet_drops_total{network="efa"}'] == "3"
    assert not [name for name in samples if '"lo"' in name]


@pytest.mark.parametrize(
    ("mounts", "mounted"),
    [("10.0.1.2@tcp:/abcdefgh {root}/fsx lustre rw 0 0\n", "1"), ("/dev/nvme0n1p1 {root}/fsx xfs rw 0 0\n", "0")],
)
def test_a_node_says_whether_its_file_system_is_mounted(machine, mounts, mounted):
    machine.write("proc/mounts", mounts.format(root=machine.root))
    step = lustre_step(mounts=[("/fsx", "abcdefgh")])
    samples, _ = collect(machine, step, **lustre())
    assert samples[f'lustre_mounted{{target="abcdefgh",mountpoint="{machine.root}/fsx"}}'] == mounted


def test_without_a_client_nothing_is_written(machine):
    assert collect(machine, lustre_step(), lctl="exit 2", lnetctl="exit 2") == ({}, {})


# the catalogue


def written(samples):
    return {key.partition("{")[0]: set(re.findall(r'(\w+)="', key)) for key in samples}


def test_the_catalogue_has_every_metric_of_efa_with_its_labels_and_no_other(machine):
    device(machine, "rdmap16s27")
    samples, types = collect(machine, efa_step())
    assert written(samples) == {each.name: set(each.labels) for each in metrics_of("efa")}
    assert types == {each.name: each.kind for each in metrics_of("efa")}


def test_the_catalogue_has_every_metric_of_lustre_with_its_labels_and_no_other(machine):
    step = lustre_step(mounts=[("/fsx", "abcdefgh")])
    samples, types = collect(machine, step, **lustre())
    assert written(samples) == {each.name: set(each.labels) for each in metrics_of("lustre")}
    assert types == {each.name: each.kind for each in metrics_of("lustre")}
