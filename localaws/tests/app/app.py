"""A CDK app with nothing but the CDK's own constructs: a VPC, a bucket, a function and a queue."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_lambda as function
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs

app = cdk.App()
stack = cdk.Stack(app, "plain", env=cdk.Environment(account="123456789012", region="eu-west-1"))
vpc = ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=1)
bucket = s3.Bucket(stack, "Bucket", removal_policy=cdk.RemovalPolicy.DESTROY, enforce_ssl=True)
queue = sqs.Queue(stack, "Queue", visibility_timeout=cdk.Duration.seconds(90))
worker = function.Function(
    stack,
    "Worker",
    runtime=function.Runtime.PYTHON_3_13,
    handler="index.handler",
    code=function.Code.from_inline("def handler(event, context):\n    return 'done'\n"),
    environment={"BUCKET": bucket.bucket_name, "QUEUE": queue.queue_url},
    timeout=cdk.Duration.seconds(30),
)
bucket.grant_read(worker)
queue.grant_consume_messages(worker)
cdk.CfnOutput(stack, "QueueUrl", value=queue.queue_url)
cdk.CfnOutput(stack, "VpcId", value=vpc.vpc_id)
app.synth()
