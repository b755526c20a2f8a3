"""Metrics of AWS services, in a series of its own that stands in for CloudWatch."""

from collections.abc import Callable, Iterator

from scripts.observe.course import gauge, ramp
from scripts.observe.fleet import CHECKPOINT_EVERY, FILE_SYSTEM, HOMES, SPACE, Part, Series, used


class Services(Part):
    """What FSx and AMP report."""

    def series(self) -> Iterator[Series]:
        """Every series."""

        def cloudwatch(
            namespace: str,
            metric: str,
            statistic: str,
            level: Callable[[int], float | None],
            spread: float = 0.0,
            high: float = 1e18,
            **dimensions: str,
        ) -> Series:
            labels = {
                "__name__": "cloudwatch",
                "namespace": namespace,
                "metric": metric,
                "statistic": statistic,
                **dimensions,
            }
            return labels, gauge(
                "/".join((metric, *dimensions.values(), statistic)), self.times, level, spread=spread, high=high
            )

        system = {"FileSystemId": FILE_SYSTEM}
        targets = 40
        free = lambda time: SPACE / targets * (1 - used(self.day, time))
        yield cloudwatch("AWS/FSx", "FreeDataStorageCapacity", "Minimum", lambda time: free(time) * 0.82, **system)
        yield cloudwatch("AWS/FSx", "FreeDataStorageCapacity", "Average", free, **system)
        homes = {"FileSystemId": HOMES}
        yield cloudwatch("AWS/FSx", "UsedStorageCapacity", "Average", lambda _: 7.4e12, 0.001, **homes)
        for mounted, clients in ((system, 66.0), (homes, 67.0)):
            yield cloudwatch("AWS/FSx", "ClientConnections", "Maximum", lambda _, clients=clients: clients, **mounted)
        writing = lambda time: time % CHECKPOINT_EVERY < self.day.step
        for number in range(4):
            server = {**system, "FileServer": f"OSS{number:04d}"}
            yield cloudwatch(
                "AWS/FSx",
                "FileServerDiskThroughputUtilization",
                "Maximum",
                lambda time: 88.0 if writing(time) else 31.0,
                0.08,
                100,
                **server,
            )
            yield cloudwatch(
                "AWS/FSx",
                "NetworkThroughputUtilization",
                "Maximum",
                lambda time: 52.0 if writing(time) else 18.0,
                0.1,
                100,
                **server,
            )
        yield cloudwatch(
            "AWS/FSx",
            "CPUUtilization",
            "Maximum",
            lambda time: 44.0 if writing(time) else 17.0,
            0.1,
            100,
            **system,
            FileServer="MDS0000",
        )
        backlog = ramp(self.day.ago(2.2), self.day.end, 60, 2900)
        yield cloudwatch(
            "AWS/FSx",
            "AgeOfOldestQueuedMessage",
            "Maximum",
            lambda time: backlog(time) if time > self.day.ago(2.2) else 260.0 * writing(time) + 20,
            0.15,
            **system,
            Publisher="AutoExport",
        )
        yield cloudwatch(
            "AWS/FSx", "AgeOfOldestQueuedMessage", "Maximum", lambda _: 6.0, 0.5, **system, Publisher="AutoImport"
        )
        yield cloudwatch(
            "AWS/FSx",
            "RepositoryRenameOperations",
            "Sum",
            lambda time: 64.0 if writing(time) else 0.0,
            0.2,
            **system,
            Publisher="AutoExport",
        )
        usage = {
            "Service": "Prometheus",
            "Type": "Resource",
            "Class": "None",
            "ResourceId": "ws-prod",
            "Resource": "ActiveSeries",
        }
        yield cloudwatch("AWS/Usage", "ResourceCount", "Maximum", lambda _: 41200.0, 0.01, **usage)
