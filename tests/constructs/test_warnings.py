"""Warnings of an environment file are annotations, which the CDK CLI shows at synth."""

from aws_cdk import cx_api

from tests.bad_files import file_of, reading_time
from ultracluster import build_app, survey


def test_warnings_of_the_file_are_shown_at_synth():
    with reading_time():
        reading = survey(file_of("image-not-pinned"))
        assembly = build_app(reading.environment, warnings=reading.warnings).synth()
    shown = [
        message.entry.data
        for stack in assembly.stacks
        for message in stack.messages
        if message.level == cx_api.SynthesisMessageLevel.WARNING
    ]
    (finding,) = reading.warnings
    (ours,) = (text for text in shown if "ultracluster:" in text)
    assert f"{finding.path}: {finding.message}. " in ours
    assert ours.endswith("[ack: ultracluster:image-not-pinned:node_groups.0.image]")
