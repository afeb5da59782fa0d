"""What schemathesis cannot know: what a phone number is, and that an answer has no member that nobody has described."""

import base64
import copy
import json
import os

import schemathesis
from hypothesis import strategies

schemathesis.openapi.format("phone", strategies.from_regex(r"\A\+7 9[0-9]{2} [0-9]{3}-[0-9]{2}-[0-9]{2}\Z"))

# A place in each list. A cursor is what a page was answered with, so no generator could know one.
PLACES = {"/v1/endpoints": "p1", "/v1/deliveries": "d1", "/v1/deliveries/{delivery_id}/attempts": "a1"}
# What there is, by the name of the parameter of a path (see openapi.py).
THERE = json.loads(os.environ["THERE"])
# What the types of our own events begin with.
OWN = ("broadcast.", "funnel.", "lead.", "member.", "partner.", "webhook.")
# A window in which something may have happened. That it ends behind its beginning no schema can say.
SINCE, UNTIL = "2020-01-01T00:00:00Z", "2099-12-31T23:59:59Z"


@schemathesis.hook
def map_body(context, body):
    path = context.operation.path
    if path.startswith("/rest/v1/rpc/") and isinstance(body, dict):
        # PostgreSQL reads an integer from its spelling, and 3.0 is none. To a schema it is.
        count = body.get("p_attempt_count")
        if isinstance(count, float) and count.is_integer():
            return body | {"p_attempt_count": int(count)}
    if path == "/v1/events" and isinstance(body, dict) and str(body.get("type")).startswith(OWN):
        # The generator finds the types of our own events in the lists; they are nobody else's.
        return body | {"type": f"my_{body['type']}"}
    return body


@schemathesis.hook
def before_load_schema(context, raw_schema):
    close_answers(raw_schema)
    tell_places(raw_schema)
    tell_what_is_taken(raw_schema["components"]["schemas"])


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
    """Says of every list what `after` may be, and of every path what is there; a new name of either belongs above."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            parameters = operation.setdefault("parameters", [])
            if path == "/v1/events":
                # Each of its orders, which follow from another parameter, has places of its own.
                parameters[:] = [parameter for parameter in parameters if parameter["name"] != "after"]
            for parameter in parameters:
                if parameter["name"] == "after":
                    place = base64.urlsafe_b64encode(PLACES[path].encode()).decode().rstrip("=")
                    parameter["schema"] = {"type": "string", "enum": [place]}
                elif parameter["name"] in ("code", "telegramId"):
                    there = THERE["code" if parameter["name"] == "code" else "telegram_id"]
                    parameter["schema"] = {"type": "string", "enum": there}
                elif parameter["in"] == "path":
                    name = "doomed" if method == "delete" else parameter["name"]
                    parameter["schema"] = {"type": "string", "enum": THERE[name]}


def tell_what_is_taken(forms):
    """Says of some members what is taken where the document can only describe it."""
    for form in ("NewEndpoint", "EndpointChanges"):
        forms[form]["properties"]["url"] = {"type": "string", "enum": THERE["url"]}
    # Who is a member, and which link there is, no schema can say.
    forms["MemberChanges"]["properties"]["parent_uid"] = {"type": ["integer", "null"], "enum": THERE["parent"]}
    forms["RedeemedConnectLink"]["properties"] |= {
        "token": {"type": "string", "enum": THERE["token"]},
        "uid": {"type": "integer", "enum": [3]},
    }
    forms["Window"]["properties"] |= {
        "since": {"type": "string", "enum": [SINCE]},
        "until": {"type": ["string", "null"], "enum": [UNTIL, None]},
    }


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
