"""A collector of OpenTelemetry: decodes OTLP/HTTP with the official protobuf types.

Prints its port, then each export as a line of JSON. Each argument is the status of an export, and the last one repeats; `never` sends
no response."""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

STATUSES = sys.argv[1:] or ["200"]
TYPES = {
    "/v1/traces": (ExportTraceServiceRequest, ExportTraceServiceResponse),
    "/v1/metrics": (ExportMetricsServiceRequest, ExportMetricsServiceResponse),
}


def value_of(any_value):
    """The Python value of an AnyValue."""
    kind = any_value.WhichOneof("value")
    assert kind is not None, "an attribute without a value"
    value = getattr(any_value, kind)
    return [value_of(each) for each in value.values] if kind == "array_value" else value


def attributes(pairs):
    keys = [pair.key for pair in pairs]
    assert len(keys) == len(set(keys)), f"an attribute twice: {keys}"
    return {pair.key: value_of(pair.value) for pair in pairs}


def check_known(message):
    """Fails for a field that the official types do not have."""
    again = type(message)()
    again.ParseFromString(message.SerializeToString())
    again.DiscardUnknownFields()
    assert again.SerializeToString() == message.SerializeToString(), "unknown fields"


def spans(request):
    for of_resource in request.resource_spans:
        resource = attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_spans:
            assert of_scope.scope.name == "cog" and of_scope.schema_url, of_scope
            for span in of_scope.spans:
                assert len(span.trace_id) == 16 and len(span.span_id) == 8, span
                assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano, span
                yield {
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "state": span.trace_state,
                    "name": span.name,
                    "kind": type(span).SpanKind.Name(span.kind),
                    "error": span.status.code == 2,
                    "message": span.status.message,
                    "sampled": span.flags & 1 == 1,
                    "attributes": attributes(span.attributes),
                    "events": [{"name": event.name, **attributes(event.attributes)} for event in span.events],
                    "resource": resource,
                }


def metrics(request):
    for of_resource in request.resource_metrics:
        for of_scope in of_resource.scope_metrics:
            for metric in of_scope.metrics:
                data = getattr(metric, metric.WhichOneof("data"))
                for point in data.data_points:
                    shown = {"name": metric.name, "unit": metric.unit, "attributes": attributes(point.attributes)}
                    if metric.HasField("histogram"):
                        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1, point
                        assert sum(point.bucket_counts) == point.count, point
                        assert list(point.explicit_bounds) == sorted(point.explicit_bounds), point
                        shown |= {"count": point.count, "sum": point.sum}
                    else:
                        assert metric.sum.is_monotonic, metric
                        shown["value"] = point.as_int
                    yield shown


class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.headers["content-type"] == "application/x-protobuf", self.headers
        request_type, response_type = TYPES[self.path]
        request = request_type.FromString(body)
        check_known(request)
        decode = spans if self.path == "/v1/traces" else metrics
        with self.lock:
            status = STATUSES.pop(0) if len(STATUSES) > 1 else STATUSES[0]
            line = {"path": self.path, "key": self.headers.get("x-key"), "status": status, "items": list(decode(request))}
            print(json.dumps(line), flush=True)
        if status == "never":
            time.sleep(3600)
        response = response_type().SerializeToString()
        self.send_response(int(status))
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(response)))
        self.end_headers()
        self.wfile.write(response)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()
