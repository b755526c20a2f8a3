"""An empty app: measures importing the CDK, starting Node and synthesising alone."""

import aws_cdk as cdk

cdk.App(analytics_reporting=False).synth()
