"""What schemathesis cannot know: what a phone number is, and that an answer has no member that nobody has described."""

import base64
import copy

import schemathesis
from hypothesis import strategies

schemathesis.openapi.format("phone", strategies.from_regex(r"\A\+7 9[0-9]{2} [0-9]{3}-[0-9]{2}-[0-9]{2}\Z"))

# A place in each list. A cursor is what a page was answered with, so no generator could know one.
PLACES = {
    "/v1/events": "i0",
    "/v1/endpoints": "p1",
    "/v1/deliveries": "d1",
    "/v1/deliveries/{id}/attempts": "a1",
}


@schemathesis.hook
def map_body(context, body):
    """PostgreSQL reads an integer from its spelling, and 3.0 is none. To JSON Schema it is, and a schema cannot forbid it."""
    if context.operation.path.startswith("/rest/v1/rpc/") and isinstance(body, dict):
        count = body.get("p_attempt_count")
        if isinstance(count, float) and count.is_integer():
            return body | {"p_attempt_count": int(count)}
    return body


@schemathesis.hook
def before_load_schema(context, raw_schema):
    close_answers(raw_schema)
    tell_places(raw_schema)


def close_answers(document):
    """Closes the forms of answers. In the document they are open, so that a client takes what a later version adds."""
    forms = document["components"]["schemas"]
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    answered = [operation["responses"] for operation in operations] + [document["components"]["responses"]]
    reached, waiting = set(), list(references(answered))
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(references(forms[name]))
    open_forms = copy.deepcopy(forms)
    for form in (forms[name] for name in reached):
        if "allOf" in form:
            # Its parts are open where they stand together, and closed where each stands alone.
            form["allOf"] = [open_forms.get(next(references(part), None), part) for part in form["allOf"]]
            form["unevaluatedProperties"] = False
        elif "properties" in form:
            form.setdefault("additionalProperties", False)


def tell_places(document):
    """Says of every list what `after` may be; a list that has no place here is a mistake."""
    for path, item in document["paths"].items():
        for parameter in item.get("get", {}).get("parameters", []):
            if parameter["name"] == "after":
                place = base64.urlsafe_b64encode(PLACES[path].encode()).decode().rstrip("=")
                parameter["schema"] = {"type": "string", "enum": [place]}


def references(value):
    """The names of the forms that are referred to somewhere in the value."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref" and item.startswith("#/components/schemas/"):
                yield item.rsplit("/", 1)[1]
            else:
                yield from references(item)
