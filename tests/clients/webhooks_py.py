"""The receiver in Python of docs/webhooks.md, as it stands there, takes real deliveries with the official library
(PyPI: standardwebhooks): data that tempts a re-serialiser, and a secret that is replaced meanwhile.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from pillarbox import BARE, PATIENCE_S, Pillarbox, eventually, main

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "webhooks.md"

# Each is kept, signed and sent as it stands: other bytes with the same meaning would not verify.
DATA = [
    '{"b":1,"a":2,"b":3}',
    '{"n":1e400,"m":-1E-400,"x":0.10,"y":1.0,"z":100000000000000000000000001}',
    '{"emoji":"\U0001f642","escaped":"\\ud83d\\ude42","lone":"\\ud83d"}',
    '{"separators":"\u2028\u2029","escaped":"\\u2028"}',
    '{"slashes":"\\/ \\\\ /","html":"<script>&amp;\'"}',
    '{ "white" :\t[ 1 ,\n 2 ] }',
    '{"nested":' + "[" * 90 + "]" * 90 + "}",
    "{}",
]


def receiver():
    """The page's program."""
    blocks = [block.split("\n```")[0] for block in PAGE.read_text().split("```python\n")[1:]]
    [block] = [block for block in blocks if "standardwebhooks" in block]
    return block


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Receiver(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pillarbox = Pillarbox.dev()
        cls.addClassCleanup(cls.pillarbox.close)

    def call(self, method, path, body=None):
        status, answer = self.pillarbox.call(method, path, body, self.pillarbox.ready["api_key"])
        self.assertLess(status, 300, answer)
        return answer

    def endpoint(self, url):
        return self.call("POST", "/v1/endpoints", {"url": url, "event_types": ["order.*"]})

    def post(self, data):
        """Posts an event with these data, byte for byte."""
        body = '{"type":"order.paid","version":1,"aggregate":{"type":"order","id":"17"},"data":' + data + "}"
        headers = {"Authorization": f"Bearer {self.pillarbox.ready['api_key']}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.pillarbox.url + "/v1/events", body.encode(), headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)["event_id"]

    def test_the_receiver_of_the_page_verifies_whatever_is_in_the_data(self):
        port = free_port()
        endpoint = self.endpoint(f"http://127.0.0.1:{port}/hooks")
        log = self.pillarbox.folder / "receiver.log"
        env = BARE | {"WEBHOOK_SECRET": endpoint["secret"], "PORT": str(port), "PYTHONPATH": os.environ["PYTHONPATH"]}
        with open(log, "wb") as out:
            program = subprocess.Popen([sys.executable, "-c", receiver()], env=env, stdout=out, stderr=out)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        eventually("the receiver to listen", lambda: listens(port))
        ids = [self.post(data) for data in DATA]
        said = lambda: {line.split()[1] for line in log.read_text().splitlines() if line.startswith("order.paid ")}
        eventually("every event", lambda: said() >= set(ids))
        deliveries = lambda: self.call("GET", f"/v1/deliveries?endpoint_id={endpoint['id']}")["items"]
        eventually("all delivered", lambda: all(item["status"] == "delivered" for item in deliveries()))
        self.assertEqual({item["attempts"] for item in deliveries()}, {1}, log.read_text())
        # What is not from here is refused.
        headers = {"webhook-id": "a", "webhook-timestamp": "1", "webhook-signature": "v1"}
        forged = urllib.request.Request(f"http://127.0.0.1:{port}/hooks", b"{}", headers)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(forged, timeout=PATIENCE_S)
        self.assertEqual(refused.exception.code, 400)
        refused.exception.close()
        self.call("POST", f"/v1/endpoints/{endpoint['id']}/rotate-secret", {"overlap_seconds": 0})

    def test_while_a_secret_is_replaced_both_verify_and_then_the_new_one_only(self):
        endpoint = self.endpoint(f"{self.pillarbox.url}/dev/sink/rotated")
        came = lambda: self.pillarbox.call("GET", "/dev/sink/rotated/requests")[1]["requests"]
        rotate = f"/v1/endpoints/{endpoint['id']}/rotate-secret"
        old, new = endpoint["secret"], self.call("POST", rotate, {"overlap_seconds": 3600})["secret"]
        self.post("{}")
        [during] = eventually("a delivery", came)
        latest = self.call("POST", rotate, {"overlap_seconds": 0})["secret"]
        self.post("{}")
        after = eventually("another", lambda: len(came()) == 2 and came()[1])
        takes = {
            (name, secret): self.takes(secret, request)
            for name, request in (("during", during), ("after", after))
            for secret in (old, new, latest)
        }
        self.assertEqual([secret for secret in (old, new, latest) if takes["during", secret]], [old, new])
        # Without an overlap also the one of before the first replacement stops, which had an hour.
        self.assertEqual([secret for secret in (old, new, latest) if takes["after", secret]], [latest])

    @staticmethod
    def takes(secret, request):
        try:
            Webhook(secret).verify(request["body"].encode(), request["headers"])
        except WebhookVerificationError:
            return False
        return True


if __name__ == "__main__":
    main()
