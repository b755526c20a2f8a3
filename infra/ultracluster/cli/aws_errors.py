"""Errors of AWS, in words for people."""

NO_CREDENTIALS = "No AWS credentials. Set AWS_PROFILE or sign in with `aws sso login`"


def in_words(error: Exception) -> str:
    """What to do about an error of botocore: to sign in, where it found no credentials or they expired."""
    from botocore import exceptions

    unsigned = (exceptions.NoCredentialsError, exceptions.PartialCredentialsError, exceptions.TokenRetrievalError)
    if isinstance(error, (*unsigned, exceptions.SSOTokenLoadError, exceptions.UnauthorizedSSOTokenError)):
        return NO_CREDENTIALS
    return f"AWS did not answer: {error}"
