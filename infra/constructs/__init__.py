"""CDK constructs, one module per thing. Import them from their modules: `from infra.constructs.lustre import ...`."""
