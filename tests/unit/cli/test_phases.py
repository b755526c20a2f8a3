"""What `make up` and `make down` show of the output of the CDK CLI: a line for each stack, and all of a failure."""

import os
import signal
import subprocess
import sys
import time

from scripts.phases import phases
from tests.synthesis import ROOT

DEPLOYED = """\
✨  Synthesis time: 0.08s

dev-network: start: Building dev-network Template
dev-network: success: Built dev-network Template
dev-network: deploying... [1/2]
dev-network |  0/56 | 1:38:25 PM | CREATE_IN_PROGRESS      | AWS::CloudFormation::Stack | dev-network User Initiated
dev-network | 56/56 | 1:38:44 PM | CREATE_COMPLETE         | AWS::CloudFormation::Stack | dev-network

 ✅  dev-network

✨  Deployment time: 13.95s

Outputs:
dev-network.ExportsOutputRefVpc = vpc-1
dev-network.Kubeconfig = aws eks update-kubeconfig --name dev
Stack ARN:
arn:aws:cloudformation:us-east-2:123456789012:stack/dev-network/1

dev-storage: deploying... [2/2]
 ✅  dev-storage (no changes)

✨  Deployment time: 0.1s

✨  Total time: 27.97s
"""

DESTROYED = """\
dev-network: destroying... [8/8]
dev-network |  0 | 1:06:35 AM | DELETE_IN_PROGRESS      | AWS::CloudFormation::Stack | dev-network User Initiated
dev-network |  0 | 1:06:35 AM | DELETE_IN_PROGRESS      | AWS::EC2::SecurityGroup    | LoginGroup (LoginGroup3A76C925)
dev-network |  1 | 1:06:35 AM | DELETE_COMPLETE         | AWS::EC2::SecurityGroup    | LoginGroup (LoginGroup3A76C925)
dev-network |  1 | 1:06:35 AM | DELETE_SKIPPED          | AWS::EC2::VPC              | Network/Vpc (NetworkVpc7FB7348F)
dev-network |  1 | 1:06:35 AM | DELETE_SKIPPED          | AWS::KMS::Key              | Network/LogKey/Resource
dev-network |  2 | 1:06:35 AM | DELETE_COMPLETE         | AWS::CloudFormation::Stack | dev-network
✅  dev-network: destroyed
"""

FAILED = """\
dev-compute: deploying... [8/8]
dev-compute |  1/11 | 1:38:44 PM | CREATE_FAILED           | AWS::PCS::Queue            | Group-train No capacity
dev-compute |  1/11 | 1:38:45 PM | ROLLBACK_IN_PROGRESS    | AWS::CloudFormation::Stack | dev-compute
dev-compute |  1/11 | 1:38:46 PM | DELETE_COMPLETE         | AWS::EC2::LaunchTemplate   | Template-train
 ❌  dev-compute failed: DeploymentError: The stack failed creation

Failed resources:
dev-compute | Group-train: Insufficient capacity
"""


def test_a_destroyed_stack_is_a_line_with_what_is_retained():
    assert list(phases(DESTROYED.splitlines(keepends=True))) == [
        "dev-network: destroying... [8/8]",
        "  dev-network: destroyed; 1 deleted, 2 retained",
    ]


def test_a_deployment_is_a_line_for_each_stack():
    assert list(phases(DEPLOYED.splitlines(keepends=True))) == [
        "dev-network: deploying... [1/2]",
        "  dev-network: deployed, 56 resources in 13.95 s",
        "dev-network.Kubeconfig = aws eks update-kubeconfig --name dev",
        "dev-storage: deploying... [2/2]",
        "  dev-storage: no changes",
        "✨  Total time: 27.97s",
    ]


def test_a_failure_is_shown_with_its_events_and_all_that_follows():
    lines = FAILED.splitlines()
    assert list(phases(FAILED.splitlines(keepends=True))) == [line for line in lines if "DELETE_COMPLETE" not in line]


def test_the_log_has_every_line_and_ctrl_c_loses_none(tmp_path):
    log = tmp_path / "out" / "dev.log"
    command = [sys.executable, "-m", "scripts.phases", str(log)]
    reader = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert reader.stdin
    reader.stdin.write("dev-network: deploying... [1/2]\n")
    reader.stdin.flush()
    while not (log.exists() and log.read_text()):
        assert reader.poll() is None
        time.sleep(0.01)
    os.kill(reader.pid, signal.SIGINT)
    output, errors = reader.communicate(DEPLOYED)
    assert (reader.returncode, errors) == (0, "")
    assert "dev-storage: no changes" in output
    assert log.read_text() == "dev-network: deploying... [1/2]\n" + DEPLOYED
