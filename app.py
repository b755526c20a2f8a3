"""CDK entry point: `npx cdk deploy --all -c env=NAME` deploys environments/NAME.yaml."""

import gc
import sys
from pathlib import Path

gc.disable()  # the CDK's modules set the collector off again and again, and synth is over before it finds anything

import aws_cdk as cdk

from ultracluster.config.loader import RefusedEnvironment, load
from ultracluster.stacks import build_app

app = cdk.App(analytics_reporting=False)
name = app.node.try_get_context("env") or "dev"
try:
    environment = load(Path(__file__).parent / "environments" / f"{name}.yaml")
except RefusedEnvironment as refused:
    sys.exit(str(refused))
build_app(environment, app=app).synth()
gc.freeze()  # as it ends, Python would look through all of the CDK once more
