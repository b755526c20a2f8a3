"""Resource types as rows of a table: what botocore's models and the registry's schemas lack."""
