"""What schemathesis cannot know: what a phone number is, and that an answer has no member that nobody has described."""

import schemathesis
from hypothesis import strategies

schemathesis.openapi.format("phone", strategies.from_regex(r"\A\+7 9[0-9]{2} [0-9]{3}-[0-9]{2}-[0-9]{2}\Z"))


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Closes the forms of answers. In the document they are open, so that a client takes what a later version adds."""
    forms = raw_schema["components"]["schemas"]
    operations = [operation for item in raw_schema["paths"].values() for operation in item.values()]
    answered = [operation["responses"] for operation in operations] + [raw_schema["components"]["responses"]]
    seen, waiting = set(), list(references(answered))
    while waiting:
        name = waiting.pop()
        if name not in seen and name in forms:
            seen.add(name)
            waiting.extend(references(forms[name]))
            if "properties" in forms[name]:
                forms[name].setdefault("additionalProperties", False)


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
