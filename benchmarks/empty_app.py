"""An app with nothing in it: what importing the CDK, starting Node and synthesising costs by itself."""

import aws_cdk as cdk

cdk.App(analytics_reporting=False).synth()
