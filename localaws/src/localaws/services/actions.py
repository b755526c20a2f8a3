"""The actions of a service on its kinds, derived from botocore's model, and the registration of services with moto."""

import base64
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, cast
from urllib.parse import urlsplit

from moto import backend_index
from moto.core.base_backend import BackendDict
from moto.core.responses import ActionResult, BaseResponse, EmptyResult
from moto.core.utils import camelcase_to_underscores, get_service_model

from localaws.services import given, models
from localaws.services.service import Refusal, problems
from localaws.services.store import Call, Item, Kind, Rule, Store, checks

VERBS = {
    "Create": "create",
    "Describe": "read",
    "Get": "read",
    "List": "list_all",
    "Update": "update",
    "Put": "update",
    "Delete": "delete",
}
"""Methods of `Actions` by the verb of an operation."""


class Actions(BaseResponse):  # type: ignore[misc]  # moto is untyped
    """The actions on `kinds`: each operation of the model on one of them that the subclass does not define itself.

    `params` are parsed and validated by the model: the client checks types and required members, the service
    enumerations, patterns and ranges; `invalid` is the code of an error.
    """

    service: ClassVar[str]
    invalid: ClassVar[str] = "ValidationException"
    kinds: ClassVar[tuple[Kind, ...]]
    rules: ClassVar[tuple[Rule, ...]] = ()
    no_such_arn: ClassVar[str] = "Resource {arn} was not found."

    def __init__(self) -> None:
        super().__init__(service_name=self.service)

    @property
    def store(self) -> Store:
        """The state of the caller's account and Region."""
        return cast("Store", BACKENDS[self.service][self.current_account][self.region])

    # verbs

    def create(self, kind: Kind) -> ActionResult:
        """Create a resource with the members of the request, when nothing refuses it."""
        call = self.call("Create", kind)
        new_id = given.instead_of(kind.new_id(call)) if kind.new_id else self._identifier(kind) or call.within.id
        call.new = models.merged(kind.defaults, self.given(call))
        self.store.check_new(call, new_id)
        self.check(call)
        tags = call.request.get("tags") or call.request.get("Tags")
        call.item = self.store.add(kind, new_id, call.new, call.parent, tags)
        try:
            _run(kind.made, call)
        except Exception:
            self.store.remove(call.item)
            raise
        return self.answer(call, call.item.view())

    def read(self, kind: Kind) -> ActionResult:
        """One resource, or those that the request lists by id."""
        if models.listed(self.store.model, self._get_action()):
            return self.list_all(kind)
        call = self.call("Describe", kind)
        return self.answer(call, call.target.view())

    def list_all(self, kind: Kind) -> ActionResult:
        """The requested page of the resources. Ids stand for them where the model has strings."""
        call = self.call("List", kind)
        self.check(call)
        wanted = call.request.get(f"{kind.address}s")
        items = [self.store.get(kind, each) for each in wanted] if wanted else self.store.all(kind, call.parent)
        items = [item for item in items if kind.listed is None or kind.listed(call, item)]
        name, member = cast("tuple[str, Any]", models.listed(self.store.model, call.operation))
        shown = [item.id if member.type_name == "string" else item.view() for item in items]
        return ActionResult({**self._above(call), **self.page(name, shown).result})

    def update(self, kind: Kind) -> ActionResult:
        """Change the members in the request, when nothing refuses it."""
        call = self.call("Update", kind)
        changes = self.given(call)
        for name in kind.merged.split():
            changes[name] = models.merged(call.old.get(name, {}), changes.get(name, {}))
        call.new = {**call.old, **changes}
        self.check(call)
        call.target.change({**dict.fromkeys(call.old), **call.new})
        _run(kind.changed, call)
        return self.answer(call, call.target.view())

    def delete(self, kind: Kind) -> ActionResult:
        """Delete a resource with all that is within it, when nothing refuses it."""
        call = self.call("Delete", kind)
        self.check(call)
        answer = self.answer(call, call.target.view("DELETING"))
        _run(kind.removed, call)
        self.store.remove(call.target)
        return answer

    # tags

    def list_tags_for_resource(self) -> ActionResult:
        """The tags of a resource."""
        shape = self.store.model.operation_model("ListTagsForResource").output_shape
        return ActionResult(models.tags_out(shape, self.requested_tags()))

    def tag_resource(self) -> ActionResult:
        """Add or overwrite tags."""
        self.requested_tags().update(models.tags_in(self.params.get("tags") or self.params.get("Tags")))
        return EmptyResult()

    def untag_resource(self) -> ActionResult:
        """Remove tags; unknown keys are fine."""
        for key in self.params.get("tagKeys") or self.params.get("TagKeys") or ():
            self.requested_tags().pop(key, None)
        return EmptyResult()

    def requested_tags(self) -> dict[str, str]:
        """The tags of the resource that the request names; Refusal when it does not exist."""
        arn = self.params.get("resourceArn") or self.params.get("ResourceARN")
        if arn not in self.store.tags:
            code = models.error_code(self._operation(), *_NO_ARN)
            raise Refusal(code, self.no_such_arn.format(arn=arn), resourceId=arn, resourceType="resource")
        return self.store.tags[arn]

    # requests and responses

    def setup_class(self, *args: Any, **kwargs: Any) -> None:
        """Let moto parse the request by the model. The action is looked up first: it defines the URI parameters."""
        self.automated_parameter_parsing = True
        super().setup_class(*args, **kwargs)

    def get_region_from_url(self, request: Any, full_url: str) -> str:
        """The Region of the host. A path may hold the name of a service: that of a service-linked role does."""
        url = urlsplit(full_url)
        region: str = super().get_region_from_url(request, f"{url.scheme}://{url.netloc}")
        return region

    def call_action(self) -> Any:
        """Run the action, or return AWS's validation error."""
        found = next(problems(self._operation().input_shape, self.params, ""), None)
        if found is None:
            return super().call_action()
        refusal = Refusal(self.invalid, f"1 validation error detected: {found}")
        status, headers, body = self.serialized(ActionResult(refusal))
        return status, *self._enrich_response({**headers, "status": status}, body)

    def page(self, name: str, items: list[Any]) -> ActionResult:
        """The requested page of a list. The token is the start of the next page."""
        upper = "NextToken" in self._operation().input_shape.members
        token_name, size_name = ("NextToken", "MaxResults") if upper else ("nextToken", "maxResults")
        start = int(base64.b64decode(self.params.get(token_name) or b"MA=="))
        end = start + (self.params.get(size_name) or 100)
        token = base64.b64encode(str(end).encode()).decode() if end < len(items) else None
        return ActionResult({name: items[start:end], token_name: token})

    def serialized(self, action_result: ActionResult) -> Any:
        """The response; an error gets those members of its shape that the model determines."""
        if isinstance(action_result.result, Refusal):
            models.complete(self.store.model, action_result.result)
        return super().serialized(action_result)

    # parts of the verbs, also for actions that a service defines itself

    def call(self, verb: str, kind: Kind) -> Call:
        """The request with its parent and resource; Refusal when one is missing or not ACTIVE."""
        call = Call(self.store, self._get_action(), verb, kind, self.params)
        if kind.parent and (above := self._identifier(kind.parent)) is not None:
            call.parent = self._find(kind.parent, above)
            if verb in kind.active.split():
                self.store.require_active(call.parent)
        if verb not in ("Create", "List"):
            identifier = self._identifier(kind) if kind.address else call.within.id
            call.item = self.store.get(kind, str(identifier), call.parent)
            call.parent = call.item.parent
            if verb in kind.active_itself.split():
                self.store.require_active(call.item)
        return call

    def given(self, call: Call) -> dict[str, Any]:
        """The members of the request that the description has."""
        return models.stored(self.store.model, call.kind.noun, call.operation, call.request)

    def check(self, call: Call) -> None:
        """Complete the new description, and raise what the first rule refuses."""
        if call.verb in ("Create", "Update"):
            _run(call.kind.describe, call)
        for rule in checks(self.rules, call):
            rule.check(call)

    def answer(self, call: Call, view: dict[str, Any]) -> ActionResult:
        """The response with a description: in a member of the resource's name, or its members beside each other."""
        shape, noun = self._operation().output_shape, call.kind.noun.lower()
        wrapped = [name for name in (shape.members if shape else ()) if noun.endswith(name.lower())]
        own = dict.fromkeys(call.kind.address.split(), call.target.id)
        return ActionResult({**self._above(call), **own, **view, **dict.fromkeys(wrapped, view)})

    def _find(self, kind: Kind, identifier: str) -> Item:
        above = self._identifier(kind.parent) if kind.parent else None
        parent = self._find(kind.parent, above) if kind.parent and above is not None else None
        return self.store.get(kind, identifier, parent)

    def _identifier(self, kind: Kind) -> str | None:
        return next((self.params[name] for name in kind.address.split() if name in self.params), None)

    def _above(self, call: Call) -> dict[str, str]:
        """The ids of the parents, under the names that requests have for them."""
        found: dict[str, str] = {}
        item = call.parent
        while item is not None:
            found |= dict.fromkeys(item.kind.address.split(), item.id)
            item = item.parent
        return found

    def _operation(self) -> Any:
        return self.store.model.operation_model(self._get_action())


def _run(hook: Callable[[Call], None] | None, call: Call) -> None:
    if hook is not None:
        hook(call)


_NO_ARN = ("ResourceNotFoundException", "NotFoundException", "ResourceNotFound")
BACKENDS: dict[str, Any] = {}
"""The stores of each service by account and Region."""


def add_service(label: str, responses: type[Actions], *paths: str, store: type[Store] = Store, host: str = "") -> Any:
    """Add a service to moto, in process and in its server. Returns the stores by account and Region.

    boto3 has no list of Regions for some of the services, so EC2's list is used. The registry's schemas decide in which
    Regions a resource type exists.
    """
    name = responses.service
    for operation, verb, kind in derived(responses):
        method = camelcase_to_underscores(operation)
        own = getattr(responses, method, None)
        if own is None or own.__module__.startswith("moto."):
            setattr(responses, method, _action(verb, kind))
    urls = types.SimpleNamespace(
        url_bases=[rf"https?://{host or name}\.(.+)\.amazonaws\.com"],
        url_paths={f"{{0}}{path}$": responses.dispatch for path in paths},
    )
    members = {"urls_of": urls, "model": get_service_model(name), "label": label}
    backends = BackendDict(type(f"{label}Store", (store,), members), "ec2")
    module = types.ModuleType(f"moto.{name}")
    setattr(module, f"{name}_backends", backends)
    sys.modules[module.__name__] = module
    backend_index.backend_url_patterns.insert(0, (name, re.compile(urls.url_bases[0])))
    BACKENDS[name] = backends
    return backends


def _action(verb: str, kind: Kind) -> Callable[[Actions], ActionResult]:
    def action(self: Actions) -> ActionResult:
        return cast("ActionResult", getattr(self, verb)(kind))

    return action


def derived(responses: type[Actions]) -> Iterator[tuple[str, str, Kind]]:
    """Operations of the model on one of the kinds: the name, the verb and the kind."""
    known = get_service_model(responses.service).operation_names
    for kind in responses.kinds:
        for word, verb in VERBS.items():
            for noun in (kind.noun, models.plural(kind.noun)):
                if f"{word}{noun}" in known:
                    yield f"{word}{noun}", verb, kind
