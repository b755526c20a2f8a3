"""Code of our Lambda functions. Each file travels inside a template as it is, so it stands alone and stays short."""
