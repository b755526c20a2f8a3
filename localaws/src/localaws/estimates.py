"""How long operations would take in an account: a simulated clock over what the engine did. Pure; nothing waits.

CloudFormation works on all resources of a stack whose dependencies are ready; the CDK CLI deploys a stack after those
that it depends on, `concurrency` at a time. The figures are estimates (`data/durations.json`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple

from localaws.records import records

Verb = Literal["CREATE", "UPDATE", "DELETE", "NONE"]
MOST_NAMED = 5
STACK_TYPE = "AWS::CloudFormation::Stack"
LEAST, LIKELY, MOST = range(3)  # positions in a row of figures


@dataclass(frozen=True)
class Step:
    """What an operation does with one resource. NONE is a resource that it leaves as it is."""

    logical_id: str
    type: str
    verb: Verb
    needs: frozenset[str]
    properties: Mapping[str, Any] = field(default_factory=dict)
    phase: int = 0  # deployment, clean-up and rollback follow one another


@dataclass
class StackOperation:
    """One operation on a stack, while it runs and afterwards."""

    account: str
    region: str
    stack: str
    steps: list[Step] = field(default_factory=list)
    exports: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()

    def waits_for(self, earlier: "StackOperation") -> bool:
        """Whether the CDK CLI would start this operation after `earlier`, which it did before."""
        if (self.account, self.region) != (earlier.account, earlier.region):
            return False
        return self.stack == earlier.stack or bool(self.imports & earlier.exports or self.exports & earlier.imports)


class Timed(NamedTuple):
    """A step on the simulated clock, in seconds after the operation began."""

    step: Step
    start: float
    end: float
    after: int | None  # position of the step that it waited for last


class Cause(NamedTuple):
    """A resource that the end of the deployment waits for."""

    stack: str
    logical_id: str
    type: str
    verb: str
    seconds: float


class ResourceTime(NamedTuple):
    """A resource on the simulated clock, in seconds after the deployment began."""

    stack: str
    logical_id: str
    type: str
    verb: str
    start: float
    end: float


class StackTime(NamedTuple):
    """A stack on the simulated clock, in seconds after the deployment began."""

    stack: str
    start: float
    end: float


@dataclass(frozen=True)
class Estimate:
    """How long the operations would take in an account, in seconds."""

    least: float
    likely: float
    most: float
    concurrency: int  # stacks that the CDK CLI deploys at a time
    stacks: tuple[StackTime, ...]
    held_up_by: tuple[Cause, ...]  # longest first
    resources: tuple[ResourceTime, ...]  # by start

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "Estimate":
        """The estimate in a server's answer."""
        lists = {
            "stacks": tuple(StackTime(*row) for row in answer["stacks"]),
            "held_up_by": tuple(Cause(*row) for row in answer["held_up_by"]),
            "resources": tuple(ResourceTime(*row) for row in answer["resources"]),
        }
        return cls(**{**answer, **lists})

    def __str__(self) -> str:
        """For example: Estimate for an account: 23 min (17 to 50); held up by AWS::PCS::Cluster Main in a (10 min)."""
        if not self.stacks:
            return "Estimate for an account: no stack changed"
        causes = ", ".join(
            f"{cause.type} {cause.logical_id} in {cause.stack} ({_span(cause.seconds)})" for cause in self.held_up_by
        )
        return f"Estimate for an account: {self.time}; held up by {causes}"

    @property
    def time(self) -> str:
        """For example: 23 min (17 to 50)."""
        return f"{_span(self.likely)} ({_minutes(self.least)} to {_minutes(self.most)})"


def seconds(step: Step, level: int = LIKELY) -> float:
    """How long the step takes: LEAST, LIKELY or MOST."""
    if step.verb == "NONE":
        return 0
    rows = (*_figures()["types"].get(step.type, ()), _figures()["default"])
    row = next(row for row in rows if _matches(row.get("when", {}), step.properties))
    return float(row[step.verb.lower()][level])


def schedule(steps: Sequence[Step], level: int = LIKELY) -> list[Timed]:
    """The steps on the clock, in their order: each begins when those that it waits for have ended.

    The steps of a phase stand after those that they wait for. A deletion waits for the deletion of what needs it.
    """
    done: list[Timed] = []
    began, last = 0.0, None
    for position, step in enumerate(steps):
        if position and step.phase != steps[position - 1].phase:
            last = _latest(done, range(position))
            began = done[last].end if last is not None else 0.0
        before = [other for other in range(position) if steps[other].phase == step.phase and _waits(step, steps[other])]
        after = _latest(done, before)
        start = began if after is None else done[after].end
        done.append(Timed(step, start, start + seconds(step, level), last if after is None else after))
    return done


def critical_path(timed: Sequence[Timed]) -> list[Timed]:
    """The steps that the end of the operation waits for, first to last."""
    position = _latest(timed, range(len(timed)))
    path: list[Timed] = []
    while position is not None:
        path.append(timed[position])
        position = timed[position].after
    return path[::-1]


def estimate(operations: Sequence[StackOperation], concurrency: int = 1) -> Estimate:
    """The time of operations that one run of the CDK CLI started, in their order."""
    if concurrency < 1:
        raise ValueError(f"concurrency must be at least 1, not {concurrency}")
    changed = [operation for operation in operations if any(step.verb != "NONE" for step in operation.steps)]
    ends = [_stack_times(changed, concurrency, level) for level in (LEAST, LIKELY, MOST)]
    likely = ends[LIKELY]
    timed = [schedule(operation.steps) for operation in changed]
    causes = [
        Cause(changed[position].stack, step.logical_id, step.type, step.verb, end - start)
        for position in _last_chain(changed, likely)
        for step, start, end, _ in critical_path(timed[position])
        if step.verb != "NONE"
    ]
    resources = [
        ResourceTime(time.stack, step.logical_id, step.type, step.verb, begin + start, begin + end)
        for time, steps in zip(likely, timed, strict=True)
        for begin in [time.end - max(end for _, _, end, _ in steps)]  # after the stack's own time
        for step, start, end, _ in steps
        if step.verb != "NONE"
    ]
    least, usual, most = (max((end for _, _, end in times), default=0.0) for times in ends)
    longest = sorted(causes, key=lambda cause: -cause.seconds)[:MOST_NAMED]
    in_order = sorted(resources, key=lambda found: found.start)
    return Estimate(least, usual, most, concurrency, tuple(likely), tuple(longest), tuple(in_order))


def _stack_times(operations: Sequence[StackOperation], concurrency: int, level: int) -> list[StackTime]:
    """The operations on the clock, in their order. Of those that may begin next, the earliest in that order does."""
    needs = [
        {earlier for earlier in range(position) if operation.waits_for(operations[earlier])}
        for position, operation in enumerate(operations)
    ]
    free = [0.0] * min(concurrency, len(operations))
    done: dict[int, StackTime] = {}
    while len(done) < len(operations):
        starts = [
            (max([free[0], *(done[other].end for other in needs[position])]), position)
            for position in range(len(operations))
            if position not in done and needs[position] <= done.keys()
        ]
        start, position = min(starts)
        end = start + _stack_seconds(operations[position], level)
        free = sorted([*free[1:], end])
        done[position] = StackTime(operations[position].stack, start, end)
    return [done[position] for position in range(len(operations))]


def _stack_seconds(operation: StackOperation, level: int) -> float:
    verb = next(step.verb for step in operation.steps if step.verb != "NONE")
    itself = seconds(Step(operation.stack, STACK_TYPE, verb, frozenset()), level)
    return itself + max(timed.end for timed in schedule(operation.steps, level))


def _last_chain(operations: Sequence[StackOperation], times: Sequence[StackTime]) -> Iterator[int]:
    """The operations that the end of the last one waited for: each began when the one before it ended."""
    until = max((time.end for time in times), default=0.0)
    for position in reversed(range(len(operations))):
        if times[position].end == until:
            yield position
            until = times[position].start


def _waits(step: Step, earlier: Step) -> bool:
    if step.verb == "DELETE":
        return step.logical_id in earlier.needs
    return earlier.logical_id in step.needs


def _latest(timed: Sequence[Timed], positions: Sequence[int]) -> int | None:
    return max(positions, key=lambda position: timed[position].end, default=None)


def _matches(when: Mapping[str, Any], properties: Mapping[str, Any]) -> bool:
    """Whether each property has the value, or is there when the value is true."""
    return all(name in properties if value is True else properties.get(name) == value for name, value in when.items())


@cache
def _figures() -> Mapping[str, Any]:
    return records("durations")


def _minutes(time: float) -> str:
    return str(max(1, round(time / 60)))


def _span(time: float) -> str:
    return f"{_minutes(time)} min" if time >= 60 else f"{round(time)} s"
