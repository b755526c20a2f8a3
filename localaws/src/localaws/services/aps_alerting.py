"""AMP: rule groups namespaces and the alert manager definition, with what the service refuses in their files."""

import base64
import functools
import re
from collections.abc import Generator, Iterator, Mapping
from typing import Any

import yaml

from localaws.documents import load_yaml
from localaws.services.service import invalid
from localaws.services.store import Call

# AMP User Guide, "Service quotas" (2026)
MAX_BYTES = 1_000_000
MAX_RULES = 2000
MIN_INTERVAL_SECONDS = 30
MAX_ROUTES = MAX_INHIBITIONS = MAX_TEMPLATES = 100
RECEIVERS = {"name", "sns_configs", "pagerduty_configs"}

_DURATION = re.compile(r"^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$")
_SECONDS = (31_536_000, 604_800, 86_400, 3600, 60, 1, 0.001)
_RECORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_GROUP = {"name", "interval", "limit", "query_offset", "labels", "rules"}
_RULE = {"record", "alert", "expr", "for", "keep_firing_for", "labels", "annotations"}
_SECRET = {"secret_arn", "secret_key", "refresh_interval"}
_SECRET_ARN = re.compile(r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:\S+")
_TOPIC_ARN = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}")


def check_rules(call: Call) -> None:
    """Refusal of a rule file, alone or together with the others of the workspace."""
    text = text_of(call.request["data"])
    if found := next(rule_problems(text), None):
        raise invalid("data", found)
    if (count := sum(map(_rules_in, [text, *(other["data"].decode() for other in call.others)]))) > MAX_RULES:
        raise invalid("data", f"the workspace would have {count} rules; at most {MAX_RULES} are allowed.")


def check_definition(call: Call) -> None:
    """Refusal of an alert manager definition."""
    if found := next(definition_problems(text_of(call.request["data"])), None):
        raise invalid("data", found)


def rule_problems(text: str) -> Iterator[str]:
    """What AMP refuses in a rule file, in the order of the file."""
    document = yield from _mapping(text, "rule groups", {"groups"})
    groups = document.get("groups") if document else None
    if not isinstance(groups, list) or not groups:
        yield "groups must be a list with at least one group."
        return
    names: set[str] = set()
    for group in groups:
        if not isinstance(group, Mapping) or not group.get("name"):
            yield "each group needs a name."
            continue
        name = group["name"]
        if name in names:
            yield f'groupname: "{name}" is repeated in the same file.'
        names.add(name)
        if unknown := group.keys() - _GROUP:
            yield f"group {name}: field {sorted(unknown)[0]} not found."
        interval = duration(group.get("interval", "60s"))
        if interval is None or interval < MIN_INTERVAL_SECONDS:
            yield f"group {name}: interval must be at least {MIN_INTERVAL_SECONDS}s."
        for number, rule in enumerate(group.get("rules") or ()):
            yield from (f"group {name}, rule {number}: {problem}" for problem in _rule_problems(rule))


def _rule_problems(rule: Any) -> Iterator[str]:
    if not isinstance(rule, Mapping):
        yield "it must be a mapping."
        return
    if unknown := rule.keys() - _RULE:
        yield f"field {sorted(unknown)[0]} not found."
    if ("record" in rule) == ("alert" in rule):
        yield "exactly one of 'record' and 'alert' must be set."
    if not str(rule.get("expr") or "").strip():
        yield "field 'expr' must be set."
    elif not balanced(str(rule["expr"])):
        yield f"could not parse expression: {rule['expr']}"
    if "record" in rule:
        if not _RECORD.fullmatch(str(rule["record"])):
            yield f"invalid recording rule name: {rule['record']}."
        for name in ("for", "keep_firing_for", "annotations"):
            if name in rule:
                yield f"invalid field '{name}' in recording rule."
    for name in ("for", "keep_firing_for"):
        if name in rule and duration(rule[name]) is None:
            yield f"not a valid duration string: {rule[name]!r}."
    for name in (*(rule.get("labels") or {}), *(rule.get("annotations") or {})):
        if not _LABEL.fullmatch(str(name)) or name == "__name__":
            yield f"invalid label name: {name}."


def definition_problems(text: str) -> Iterator[str]:
    """What AMP refuses in an alert manager definition.

    Source: AMP User Guide, "Create an alert manager configuration", "Configure alert manager to send messages to your
    Amazon SNS topic", "Configure alert manager to send alerts to PagerDuty", "Service quotas" (2026).
    """
    document = yield from _mapping(text, "alert manager definition", {"alertmanager_config", "template_files"})
    if document is None:
        return
    if not isinstance(document.get("alertmanager_config"), str):
        yield "alertmanager_config must be set, as text."
        return
    if len(document.get("template_files") or {}) > MAX_TEMPLATES:
        yield f"at most {MAX_TEMPLATES} templates are allowed."
    config = yield from _mapping(document["alertmanager_config"], "alertmanager_config", None)
    if config is None:
        return
    receivers = config.get("receivers") or []
    names = [receiver.get("name") for receiver in receivers]
    for name in names:
        if names.count(name) > 1:
            yield f'notification config name "{name}" is not unique.'
    route = config.get("route")
    if not isinstance(route, Mapping) or not route.get("receiver"):
        yield "no route provided in config, or the root route has no receiver."
        return
    if route.keys() & {"match", "match_re", "matchers"}:
        yield "the root route must not have any matchers."
    routes = list(_routes(route))
    for each in routes:
        if each.get("receiver") and each["receiver"] not in names:
            yield f'undefined receiver "{each["receiver"]}" used in route.'
        for key in ("group_wait", "group_interval", "repeat_interval"):
            if key in each and duration(each[key]) is None:
                yield f"not a valid duration string: {each[key]!r}."
    if len(routes) > MAX_ROUTES:
        yield f"at most {MAX_ROUTES} routes are allowed, not {len(routes)}."
    if len(config.get("inhibit_rules") or ()) > MAX_INHIBITIONS:
        yield f"at most {MAX_INHIBITIONS} inhibition rules are allowed."
    for receiver in receivers:
        yield from (f"receiver {receiver.get('name')}: {problem}" for problem in _receiver_problems(receiver))


def _receiver_problems(receiver: Mapping[str, Any]) -> Iterator[str]:
    if unknown := receiver.keys() - RECEIVERS:
        yield f"{sorted(unknown)[0]} is not supported."
    for found in receiver.get("sns_configs") or ():
        for name in found.keys() & {"api_url", "http_config"}:
            yield f"{name} is not allowed in sns_configs."
        if not (found.get("sigv4") or {}).get("region"):
            yield "sigv4.region must be set in sns_configs."
        if not _TOPIC_ARN.fullmatch(str(found.get("topic_arn"))):
            yield f"topic_arn {found.get('topic_arn')} is not the ARN of a standard SNS topic."
    for found in receiver.get("pagerduty_configs") or ():
        given = [found[name] for name in ("routing_key", "service_key") if name in found]
        secret = given[0].get("aws_secrets_manager") if given and isinstance(given[0], Mapping) else None
        if len(given) != 1 or not isinstance(secret, Mapping) or secret.keys() - _SECRET:
            yield "routing_key must be given as aws_secrets_manager with secret_arn, secret_key and refresh_interval."
        elif not _SECRET_ARN.fullmatch(str(secret.get("secret_arn"))):
            yield f"secret_arn {secret.get('secret_arn')} is not the ARN of a secret."


def _routes(route: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield route
    for child in route.get("routes") or ():
        yield from _routes(child)


def _mapping(text: str, what: str, known: set[str] | None) -> Generator[str, None, dict[str, Any] | None]:
    """Yields problems of `text` and returns its YAML mapping, if it is one."""
    if len(text.encode()) > MAX_BYTES:
        yield f"the {what} may have at most {MAX_BYTES} bytes."
    try:
        document = load_yaml(text)
    except (ValueError, yaml.YAMLError) as error:
        yield f"the {what} is not valid YAML: {error}"
        return None
    if not isinstance(document, dict):
        yield f"the {what} must be a mapping."
        return None
    if known is not None and (unknown := document.keys() - known):
        yield f"field {sorted(map(str, unknown))[0]} not found."
    return document


def balanced(expression: str) -> bool:
    """Whether brackets outside strings and comments pair up: what a parser of PromQL demands first."""
    plain = re.sub(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`", '""', expression)
    plain = re.sub(r"#.*", "", plain)
    opened: list[str] = []
    for character in plain:
        if character in "([{":
            opened.append({"(": ")", "[": "]", "{": "}"}[character])
        elif character in ")]}" and (not opened or opened.pop() != character):
            return False
    return not opened and not re.search(r"[\"'`]", plain.replace('""', ""))


def duration(text: Any) -> float | None:
    """Seconds of a Prometheus duration such as 1h30m; None for anything else."""
    found = _DURATION.fullmatch(str(text)) if str(text) else None
    if found is None:
        return 0 if text in (0, "0") else None
    return sum(int(number) * size for number, size in zip(found.groups(), _SECONDS, strict=True) if number)


@functools.lru_cache(maxsize=256)  # each new file of a workspace is counted together with all others
def _rules_in(text: str) -> int:
    return sum(len(group.get("rules") or ()) for group in load_yaml(text)["groups"])


def text_of(data: bytes | str) -> str:
    """The file of a request; the parser leaves blobs in base64."""
    if isinstance(data, bytes):
        return data.decode()
    return base64.b64decode(data).decode()
