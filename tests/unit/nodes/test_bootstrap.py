"""Scripts of `bootstrap`: the step that runs them, run by a real bash in a folder."""

import hashlib
import re
import stat

import pytest

from tests.unit.nodes.machine import Machine, await_end, syntax_errors
from ultracluster.config.bootstrap import Script
from ultracluster.config.named_files import NamedFile
from ultracluster.config.node_groups import NodeGroup
from ultracluster.nodes.bootstrap import bootstrap_step
from ultracluster.nodes.eks import group_user_data
from ultracluster.nodes.pcs import compute_node_steps, login_node_steps
from ultracluster.nodes.steps import Step

FOLDER = "var/lib/ultracluster/bootstrap"
PURCHASE = {"type": "on_demand"}


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "files"
    found.mkdir()
    return found


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path / "machine", instance_store=2)


def script(folder, name, text, **settings) -> Script:
    (folder / name).write_text(text)
    return Script(file=NamedFile(name, folder), **settings)


def step(*scripts) -> Step:
    found = bootstrap_step(scripts, region="us-east-2", node_group="train")
    assert found
    return found


def writes(word):
    return f'#!/bin/bash\necho {word} >> "$ROOT/order"\n'


def test_there_is_no_step_without_scripts():
    assert bootstrap_step((), region="us-east-2", node_group="train") is None


def test_scripts_run_in_order_as_they_were_written(machine, folder):
    text = writes("first") + "printf '%s' 'END and \\\\ and é, without a line end'"
    found = step(script(folder, "b.sh", text), script(folder, "a.sh", writes("second")))
    ran = machine.run(found)
    assert (ran.returncode, machine.read("order")) == (0, "first\nsecond\n")
    assert machine.read(f"{FOLDER}/1-b.sh") == text
    assert ran.stdout.splitlines()[0] == "bootstrap: 1-b.sh starts"
    assert re.search(r"^bootstrap: 2-a\.sh succeeded after \d+ s$", ran.stdout, re.M)
    assert syntax_errors([found.script.text]) == []


def test_a_script_is_told_the_region_and_the_group_and_reads_nothing(machine, folder):
    text = '#!/bin/bash\necho "$ULTRACLUSTER_REGION $AWS_DEFAULT_REGION $ULTRACLUSTER_NODE_GROUP" > "$ROOT/told"; cat\n'
    assert machine.run(step(script(folder, "a.sh", text))).returncode == 0
    assert machine.read("told") == "us-east-2 us-east-2 train\n"


def test_the_program_that_a_script_names_runs_it(machine, folder):
    text = '#!/usr/bin/awk -f\nBEGIN { print "awk" }\n'
    assert "awk" in machine.run(step(script(folder, "a.awk", text))).stdout.splitlines()


def test_a_failure_stops_the_step_with_the_reason(machine, folder):
    found = step(script(folder, "a.sh", "#!/bin/bash\nexit 7\n"), script(folder, "b.sh", writes("second")))
    ran = machine.run(found)
    assert ran.returncode == 1
    assert "bootstrap: 1-a.sh failed with exit status 7" in ran.stderr
    assert not (machine.root / "order").exists()


def test_a_failure_that_may_happen_is_only_logged(machine, folder):
    first = script(folder, "a.sh", "#!/bin/bash\nexit 7\n", on_failure="continue")
    ran = machine.run(step(first, script(folder, "b.sh", writes("second"))))
    assert (ran.returncode, machine.read("order")) == (0, "second\n")
    assert "bootstrap: 1-a.sh failed with exit status 7" in ran.stderr


def test_a_script_is_stopped_after_its_time_limit_with_all_that_it_started(machine, folder):
    text = '#!/bin/bash\n(while :; do :; done) &\necho $! > "$ROOT/child"\nwait\n'
    ran = machine.run(step(script(folder, "a.sh", text, timeout_seconds=3)))
    assert ran.returncode == 1
    assert "bootstrap: 1-a.sh was stopped after 3 s, its time limit" in ran.stderr
    await_end(machine.read("child").strip())


def test_other_users_of_a_node_cannot_read_the_scripts(machine, folder):
    machine.run(step(script(folder, "a.sh", writes("x"))))
    assert stat.S_IMODE((machine.root / FOLDER).stat().st_mode) == 0o700
    assert stat.S_IMODE((machine.root / FOLDER / "1-a.sh").stat().st_mode) == 0o700


REMOTE = writes("remote")


def remote(text=REMOTE, **settings) -> Script:
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return Script(s3="s3://my-bucket/site/it's.sh", version_id="abc.def", sha256=sha256, **settings)


def downloads(text):
    return f"cat > \"${{@: -1}}\" <<'TEXT'\n{text}TEXT\necho '{{}}'"


def test_a_version_of_an_object_is_downloaded_and_runs(machine):
    found = step(remote())
    assert machine.run(found, aws=downloads(REMOTE)).returncode == 0
    assert machine.read("order") == "remote\n"
    [call] = machine.commands("aws")
    target = f"/{FOLDER}/1-it-s.sh"
    assert call == f"aws s3api get-object --bucket my-bucket --key site/it's.sh --version-id abc.def {target}"
    assert found.objects == ("my-bucket/site/it's.sh",)


@pytest.mark.parametrize("aws", [downloads(writes("other")), "exit 255"], ids=["other content", "no permission"])
def test_an_object_that_is_not_the_one_that_was_named_does_not_run(machine, aws):
    ran = machine.run(step(remote()), aws=aws)
    assert ran.returncode == 1
    assert "bootstrap: 1-it-s.sh is not the script with SHA-256 " in ran.stderr
    assert not (machine.root / "order").exists()


def test_a_download_that_fails_never_runs_what_an_earlier_one_left(machine):
    assert machine.run(step(remote()), aws=downloads(REMOTE)).returncode == 0
    assert machine.run(step(remote()), aws="exit 255").returncode == 1
    assert machine.read("order") == "remote\n"


def test_a_change_of_content_changes_the_step(folder):
    before = step(script(folder, "a.sh", writes("x"))).script.checksum
    assert step(script(folder, "a.sh", writes("x"))).script.checksum == before
    assert step(script(folder, "a.sh", writes("y"))).script.checksum != before


def group(folder, **settings) -> NodeGroup:
    (folder / "site.sh").write_text(writes("site"))
    bootstrap = [NamedFile("site.sh", folder)]
    return NodeGroup(
        name="train", instance_type="p5.48xlarge", count=2, purchase=PURCHASE, bootstrap=bootstrap, **settings
    )


def test_on_pcs_scripts_run_after_our_steps_and_before_jobs(folder, machine):
    steps = compute_node_steps(group(folder), region="us-east-2")
    assert [each.name for each in steps][-2:] == ["run-bootstrap", "admit-jobs"]
    assert machine.boot(steps) == [each.name for each in steps]
    assert machine.read("order") == "site\n"
    machine.reboot()
    machine.boot(steps, first=False)
    assert machine.read("order") == "site\n"


def test_on_pcs_a_node_on_which_a_script_fails_admits_no_job(folder, machine):
    settings = group(folder)
    (folder / "site.sh").write_text("#!/bin/bash\nexit 1\n")
    steps = compute_node_steps(settings, region="us-east-2")
    assert machine.boot(steps) == [each.name for each in steps[:-2]]
    assert not machine.ready


def test_on_a_login_node_scripts_run_last(folder):
    steps = login_node_steps(bootstrap=group(folder).boot_scripts, region="us-east-2")
    assert steps[-1].name == "run-bootstrap"
    assert steps[-1].arguments == ("us-east-2", "login")


def test_on_eks_a_node_downloads_the_step_and_runs_it_before_it_joins(folder, machine):
    own = step(*group(folder).boot_scripts)
    last = Step("run-from-s3", ("bucket", "key", own.script.checksum, *own.arguments))
    content = own.script.text.replace("/var/lib", f"{machine.root}/var/lib")
    machine.write("served", content)
    checksum = hashlib.sha256(content.encode()).hexdigest()
    machine.write("var/lib/ultracluster/x", "")
    served = Step("run-from-s3", ("bucket", "key", checksum, *own.arguments))
    ran = machine.run(served, aws='cp "$ROOT/served" "${@: -1}"')
    assert (ran.returncode, machine.read("order")) == (0, "site\n")
    [call] = machine.commands("aws")
    assert call.startswith("aws s3api get-object --region us-east-2 --bucket bucket --key key ")
    text = group_user_data(group(folder), labels={}, taints=[], lustre=None, cluster=None, last=[last])
    assert text.index("run required allocate-huge-pages") < text.index("run required run-from-s3")
    assert text.index("run required run-from-s3") < text.index(": > /var/lib/cloud/instance/ultracluster-ready")


@pytest.mark.parametrize("aws", ['echo other > "${@: -1}"', "exit 255"], ids=["other content", "no permission"])
def test_on_eks_a_step_with_another_checksum_does_not_run(folder, machine, aws):
    own = step(*group(folder).boot_scripts)
    machine.write("var/lib/ultracluster/x", "")
    served = Step("run-from-s3", ("bucket", "key", own.script.checksum, *own.arguments))
    assert machine.run(served, aws=aws).returncode
    assert not (machine.root / "order").exists()
