"""The base of every error that this package raises for what its caller passed in."""


class UltraclusterError(Exception):
    """Base class: catch it to catch every error of this package."""


class MissingExtra(UltraclusterError, ImportError):
    """A feature needs packages of an optional extra that is not installed. The text holds the command that installs it.

    `extra` is the name of the extra, `feature` what needs it.
    """

    def __init__(self, extra: str, feature: str) -> None:
        self.extra, self.feature = extra, feature
        super().__init__(f"{feature} needs the extra {extra!r}. Install it: pip install 'ultracluster[{extra}]'")


class InvalidArgument(UltraclusterError, ValueError):
    """An argument of a construct has a value, or is missing, so that nothing can be deployed."""
