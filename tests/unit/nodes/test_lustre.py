"""Steps that mount Lustre on PCS nodes, and those that prepare its client on EKS nodes, run on a fake machine."""

import pytest

from tests.unit.nodes.machine import Machine
from ultracluster.catalog import catalog, lustre
from ultracluster.nodes.lustre import LustreMount, module_option_steps, prepare_client_steps
from ultracluster.nodes.mounts import mount_steps
from ultracluster.nodes.steps import Step

P5EN, P5_SMALL = catalog["p5en.48xlarge"], catalog["p5.4xlarge"]
OVER_EFA = LustreMount("fs-1.fsx.us-east-2.amazonaws.com", "abcdefgh", "/fsx", efa=True)
OVER_TCP = LustreMount("fs-1.fsx.us-east-2.amazonaws.com", "abcdefgh", "/fsx", efa=False)
EFA_UNIT = "configure-efa-fsx-lustre-client.service"
MOUNT = "mount -t lustre -o relatime,flock,_netdev fs-1.fsx.us-east-2.amazonaws.com@tcp:/abcdefgh /fsx"


def names(steps):
    return [step.name for step in steps]


@pytest.fixture
def without_efa(tmp_path):
    """A machine on which AWS's EFA client does not start."""
    return Machine(tmp_path, efa=False)


# PCS


def test_a_login_node_mounts_with_relatime_flock_and_netdev(machine):
    (step,) = mount_steps([OVER_TCP], None)
    ran = machine.run(step)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert machine.commands("mount", "curl", "lnetctl", "lctl") == [MOUNT]
    assert machine.mounts == ["/fsx"]
    assert "Requires=network-online.target\nAfter=network-online.target\n" in machine.unit("fsx.mount")


def test_a_path_of_several_parts_has_a_unit_of_its_name(machine):
    mount = LustreMount("fs-1", "abcdefgh", "/fsx/data", efa=False)
    (step,) = mount_steps([mount], None)
    assert machine.run(step).returncode == 0
    assert "Where=/fsx/data\n" in machine.unit("fsx-data.mount")


@pytest.mark.parametrize(("mount", "hardware"), [(OVER_TCP, P5EN), (OVER_EFA, None)])
def test_efa_is_set_up_only_if_node_and_file_system_have_it(machine, mount, hardware):
    assert "set-up-lustre-efa" not in names(mount_steps([mount], hardware))
    machine.boot(mount_steps([mount], hardware))
    assert machine.mounts == ["/fsx"]
    assert machine.commands("curl", "lnetctl") == []


def test_tuning_depends_on_memory_and_vcpus():
    large, small = mount_steps([OVER_TCP], P5EN)[-1], mount_steps([OVER_TCP], P5_SMALL)[-1]
    assert "ldlm.namespaces.*.lru_size=19200" in large.arguments
    assert "mdc.*.max_rpcs_in_flight=64" in large.arguments
    assert small == Step(
        "tune-lustre",
        ("/fsx", "ldlm.namespaces.*.lru_max_age=600000", "ldlm.namespaces.*.lru_size=1600"),
        "every_boot",
        required=False,
    )
    assert not module_option_steps(P5_SMALL)


def test_first_boot_sets_efa_up_before_it_mounts_and_tunes_after_it(machine):
    steps = mount_steps([OVER_EFA], P5EN)
    assert machine.boot(steps) == names(steps)
    ran = machine.commands("curl", "python3", "configure-efa", "mount", "lnetctl", "lctl")
    download = f"curl -fsSO --retry 5 {lustre.EFA_CLIENT_PACKAGE}.zip"
    assert [ran[0], *(command.split()[0] for command in ran[1:-5])] == [
        *(download, "python3", "curl", "configure-efa", "mount", "lnetctl"),
    ]
    assert ran[-5] == "lctl set_param ldlm.namespaces.*.lru_max_age=600000"
    assert machine.read("etc/modprobe.d/lustre-tuning.conf") == (
        "options ptlrpc ptlrpcd_per_cpt_max=32\noptions ksocklnd credits=2560\n"
    )


def test_the_efa_unit_waits_for_the_instance_metadata_service(machine):
    machine.boot(mount_steps([OVER_EFA], P5EN))
    ran = machine.commands("curl", "configure-efa")
    assert ran[-1] == "configure-efa "
    assert ran[-2].startswith("curl -fsS -o /dev/null -X PUT ")
    machine.reboot(curl="exit 7")
    assert machine.systemctl("is-active", EFA_UNIT) != 0
    assert machine.mounts == []


def test_after_a_reboot_systemd_mounts_and_tunes_by_itself(machine):
    steps = mount_steps([OVER_EFA], P5EN)
    machine.boot(steps)
    machine.reboot(lctl=': > "$ROOT/tuned"')
    assert machine.mounts == ["/fsx"]
    assert (machine.root / "tuned").exists()


def test_the_second_boot_checks_mount_and_efa_and_downloads_nothing(machine):
    steps = mount_steps([OVER_EFA], P5EN)
    machine.boot(steps)
    machine.reboot()
    assert machine.boot(steps, first=False) == ["mount-lustre", "tune-lustre"]
    assert machine.mounts == ["/fsx"]
    assert machine.commands("curl", "mount") == []
    assert machine.commands("lnetctl") == ["lnetctl net show --net efa"]


def test_an_image_with_the_efa_client_downloads_nothing(machine):
    machine.write(f"etc/systemd/system/{EFA_UNIT}", "[Service]\nType=oneshot\nExecStart=/bin/true\n")
    steps = mount_steps([OVER_EFA], P5EN)
    machine.write("efa-active", "")
    assert machine.boot(steps) == names(steps)
    assert not any("--retry" in command for command in machine.commands("curl"))


def test_loaded_modules_are_unloaded_because_they_read_their_options_only_once(machine):
    machine.write("proc/modules", "lnet 1 2 - Live\nlibcfs 1 2 - Live\n")
    assert "set-up-lustre-efa" in machine.boot(mount_steps([OVER_EFA], P5EN))
    assert machine.commands("lustre_rmmod") == ["lustre_rmmod "]


def test_a_node_without_efa_fails_before_it_mounts(without_efa):
    assert without_efa.boot(mount_steps([OVER_EFA], P5EN)) == ["set-lustre-module-options"]
    assert without_efa.mounts == []


@pytest.mark.parametrize(
    ("failing", "body", "done"),
    [
        ("curl", "exit 22", ["set-lustre-module-options"]),
        ("python3", "exit 1", ["set-lustre-module-options"]),
        ("mount", "exit 32", ["set-lustre-module-options", "set-up-lustre-efa"]),
        ("lnetctl", "echo 'status: down'", ["set-lustre-module-options", "set-up-lustre-efa"]),
        ("lctl", "exit 2", ["set-lustre-module-options", "set-up-lustre-efa", "mount-lustre"]),
    ],
)
def test_a_command_that_fails_fails_its_step(machine, failing, body, done):
    assert machine.boot(mount_steps([OVER_EFA], P5EN), **{failing: body}) == done


def test_a_failed_mount_is_retried(machine):
    third = """
[ "$(grep -c "^mount " "$ROOT/log")" -ge 3 ] || exit 1
echo "${@: -1}" >> "$ROOT/mounts"
"""
    (step,) = mount_steps([OVER_TCP], None)
    assert machine.run(step, mount=third).returncode == 0
    assert len(machine.commands("mount")) == 3


def test_a_mount_that_never_succeeds_fails_the_step_after_thirty_attempts(machine):
    (step,) = mount_steps([OVER_TCP], None)
    assert machine.run(step, mount="exit 1").returncode != 0
    assert len(machine.commands("mount")) == 30


# EKS


@pytest.mark.parametrize("efa", [True, False])
@pytest.mark.parametrize("hardware", [P5EN, None])
def test_steps_of_an_eks_node_can_run_twice(machine, hardware, efa):
    steps = prepare_client_steps(hardware, efa=efa)
    for _ in range(2):
        assert machine.boot(steps) == names(steps)


def test_a_client_that_cannot_be_installed_fails_the_step(machine):
    assert machine.run(Step("install-lustre-client"), rpm="exit 1", dnf="exit 1").returncode != 0
    assert len(machine.commands("dnf")) == 5


def test_a_client_in_the_ami_is_not_installed_again(machine):
    machine.write("lustre-client-installed", "")
    assert machine.run(Step("install-lustre-client")).returncode == 0
    assert machine.commands("dnf") == []


def test_on_eks_efa_is_tried_but_not_required():
    required = {step.name: step.required for step in prepare_client_steps(P5EN, efa=True)}
    assert required == {
        "set-lustre-module-options": True,
        "install-lustre-client": True,
        "set-up-lustre-efa": False,
        "tune-lustre-mounts": True,
    }


def test_on_eks_large_clients_are_tuned_every_minute(machine):
    machine.boot(prepare_client_steps(P5EN, efa=False))
    service = machine.unit("lustre-tuning.service")
    assert "ExecStart=-/usr/sbin/lctl set_param ldlm.namespaces.*.lru_size=19200\n" in service
    assert "options ksocklnd credits=2560\n" in machine.read("etc/modprobe.d/lustre-tuning.conf")
    assert "OnUnitActiveSec=1min" in machine.unit("lustre-tuning.timer")
    assert machine.systemctl("is-active", "lustre-tuning.timer") == 0
