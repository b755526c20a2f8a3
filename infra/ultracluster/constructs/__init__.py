"""CDK constructs, one module per thing."""
