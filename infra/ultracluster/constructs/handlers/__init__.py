"""Code of inline Lambda functions. Each file is copied into a template unchanged, so it is short and stands alone."""
