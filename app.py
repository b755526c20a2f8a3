"""CDK entry point: `npx cdk deploy --all -c env=NAME` deploys environments/NAME.yaml."""

import gc
import sys
from pathlib import Path

gc.disable()  # importing the CDK's modules triggers many collections, and synth ends before one pays off

import aws_cdk as cdk

from ultracluster import RefusedEnvironment, UltraclusterError, build_app, environment_file, survey

app = cdk.App(analytics_reporting=False)
name = app.node.try_get_context("env")
if not name:
    name = "dev"
    print("No -c env=NAME is given: this is environments/dev.yaml", file=sys.stderr)  # noqa: T201
try:
    reading = survey(environment_file(Path(__file__).parent / "environments", name))
    if reading.environment is None:
        raise RefusedEnvironment(reading)
    build_app(reading.environment, app=app, warnings=reading.warnings)
except UltraclusterError as error:
    sys.exit(str(error))
app.synth()
gc.freeze()  # as Python exits, it would otherwise visit all of the CDK's objects once more
