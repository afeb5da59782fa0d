"""The official verifier for Python (`standardwebhooks`) against deliveries of a running `dev`.

The receiver is Python's own HTTP server and hands the verifier the bytes that came. Each body is also written anew by
Python's own JSON, as a careless receiver would: then the verifier must refuse it, or the test would prove nothing.
"""

import json
import pathlib
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pillarbox import Pillarbox, eventually, main
from standardwebhooks import Webhook, WebhookVerificationError

FIXTURES = pathlib.Path(__file__).parents[2] / "fixtures" / "webhooks"
# Not splitlines(): one of them has other line separators in it.
TEMPTING = (FIXTURES / "tempting.ndjson").read_bytes().rstrip(b"\n").split(b"\n")


class Receiver(BaseHTTPRequestHandler):
    """Keeps what comes, and answers with the statuses that are told for its path, then with 200."""

    protocol_version = "HTTP/1.1"
    came = []
    statuses = {}

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.came.append((self.path, dict(self.headers.items()), body))
        told = self.statuses.get(self.path, [])
        self.send_response(told.pop(0) if told else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def fits(secret, body, headers):
    try:
        Webhook(secret).verify(body, headers)
    except WebhookVerificationError:
        return False
    return True


class Verifier(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)
        cls.pillarbox = Pillarbox.dev()
        cls.addClassCleanup(cls.pillarbox.close)

    def call(self, method, path, body=None, expected=200):
        status, answer = self.pillarbox.call(method, path, body, self.pillarbox.ready["api_key"])
        self.assertEqual(status, expected, answer)
        return answer

    def subscribe(self, **more):
        """An endpoint of this test alone; its path at the receiver, its address in `/v1`, its secret."""
        path = f"/{self._testMethodName}"
        port = self.server.server_address[1]
        wanted = {"url": f"http://127.0.0.1:{port}{path}", "event_types": [self._testMethodName]} | more
        made = self.call("POST", "/v1/endpoints", wanted, 201)
        return path, f"/v1/endpoints/{made['id']}", made["secret"]

    def post(self, data=b"{}"):
        """An event for this test's endpoint, whose data are these bytes."""
        event = b'{"type": "%s", "version": 1, "aggregate": {"type": "order", "id": "7"}, "data": %s}'
        return self.call("POST", "/v1/events", event % (self._testMethodName.encode(), data), 202)["event_id"]

    def requests(self, path, count):
        look = lambda: [(headers, body) for at, headers, body in Receiver.came if at == path]
        return eventually(f"{count} requests to {path}", lambda: len(look()) >= count and look())

    def test_every_tempting_body_verifies_as_its_bytes_and_not_as_what_json_makes_of_them(self):
        path, _, secret = self.subscribe()
        sent = {self.post(data): data for data in TEMPTING}
        refused = 0
        for headers, body in self.requests(path, len(sent)):
            with self.subTest(body):
                data = sent.pop(headers["webhook-id"])
                self.assertEqual(body[body.index(b',"data":') :], b',"data":%s}' % data)
                Webhook(secret).verify(body, headers)
                again = json.dumps(json.loads(body), ensure_ascii=False, separators=(",", ":")).encode()
                self.assertEqual(fits(secret, again, headers), again == body)
                self.assertFalse(fits(secret, body + b"\n", headers))
                refused += again != body
        self.assertEqual(sent, {})
        # Python keeps the order of keys, and little else.
        self.assertGreater(refused, len(TEMPTING) // 2)

    def test_an_attempt_that_repeats_has_the_same_id_and_bytes_and_a_signature_of_its_own(self):
        path, _, secret = self.subscribe()
        Receiver.statuses[path] = [500]
        event = self.post(TEMPTING[1])
        self.advance_when_failed(event, 6)
        came = self.requests(path, 2)
        self.assertEqual({(headers["webhook-id"], body) for headers, body in came}, {(event, came[0][1])})
        first, second = (headers for headers, _ in came)
        self.assertGreaterEqual(int(second["webhook-timestamp"]) - int(first["webhook-timestamp"]), 5)
        for headers, body in came:
            Webhook(secret).verify(body, headers)
        body = came[0][1]
        for name in "webhook-timestamp", "webhook-signature":
            self.assertNotEqual(first[name], second[name])
            self.assertFalse(fits(secret, body, first | {name: second[name]}), f"{name} is of one attempt")
        self.assertFalse(fits(secret, body, first | {"webhook-id": "another"}), "the id is signed")

    def advance_when_failed(self, event, seconds):
        """Moves the clock over the next attempt, once the last one has ended."""

        def look():
            listed = self.call("GET", f"/v1/deliveries?event_type={self._testMethodName}&status=pending")["items"]
            return next((one for one in listed if one["event_id"] == event and one["attempts"] > 0), None)

        eventually("the attempt has failed", look)
        self.call("POST", "/dev/clock/advance", {"seconds": seconds})

    def test_during_a_rotation_each_secret_verifies_alone_and_afterwards_only_the_new_one(self):
        path, endpoint, old = self.subscribe()
        self.post()
        [first] = self.requests(path, 1)
        new = self.call("POST", f"{endpoint}/rotate-secret", {})["secret"]
        self.post(TEMPTING[2])
        _, second = self.requests(path, 2)
        self.assertEqual([fits(secret, first[1], first[0]) for secret in (old, new)], [True, False])
        self.assertEqual([fits(secret, second[1], second[0]) for secret in (old, new)], [True, True])
        newest = self.call("POST", f"{endpoint}/rotate-secret", {"overlap_seconds": 0})["secret"]
        self.post(TEMPTING[3])
        *_, (headers, body) = self.requests(path, 3)
        # The first one's day goes on; that of the second was ended.
        self.assertEqual([fits(secret, body, headers) for secret in (new, newest)], [False, True])

    def test_a_secret_of_the_receivers_own_and_no_other_ones(self):
        own = "whsec_" + "QUJD" * 16
        path, _, secret = self.subscribe(secret=own)
        self.assertEqual(secret, own)
        self.post()
        [(headers, body)] = self.requests(path, 1)
        self.assertTrue(fits(own, body, headers))
        self.assertFalse(fits("whsec_" + "QUJE" * 16, body, headers))

    def test_what_the_test_button_sends_verifies_too(self):
        path, endpoint, secret = self.subscribe()
        tried = self.call("POST", f"{endpoint}/test", {})
        self.assertTrue(tried["delivered"], tried)
        [(headers, body)] = self.requests(path, 1)
        self.assertEqual(Webhook(secret).verify(body, headers)["type"], "webhook.test")


if __name__ == "__main__":
    main()
