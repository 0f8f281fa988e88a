"""What schemathesis does not know of the server."""

import json

import schemathesis


@schemathesis.deserializer("application/x-ndjson")
def ndjson(ctx, response):
    """A JSON document a line; an empty line is a sign of life."""
    return [json.loads(line) for line in response.content.splitlines() if line]


@schemathesis.hook
def filter_case(ctx, case):
    """A header that the document does not name is nothing wrong (RFC 9110, 5.1)."""
    return "x-schemathesis-unknown-property" not in {name.lower() for name in case.headers or {}}
