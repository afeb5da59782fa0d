"""schemathesis (PyPI) reads `/openapi.json` and calls every operation with what the document allows and what it does not.

Nothing may be answered that the document does not say, and nothing by a 5xx. What is checked, and what is not and why, is
in schemathesis.toml.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest
import urllib.request

from pillarbox import BARE, Pillarbox, eventually, main

HERE = pathlib.Path(__file__).parent
# The whole takes about 20 s; what is stuck is ended before the script is.
LONGEST_S = 200
# Nobody but the generator fetches events and claims leads; the least pace of a form and the most leads an hour that can
# be configured, since the document tells these.
SETTINGS = [
    "bot.event_source=off",
    "bot.site_url=https://site.example/",
    "leads.delivery=rpc",
    "leads.min_fill_ms=500",
    "leads.rate_limit_per_hour=100",
]
# The lead of schemathesis.toml, as another program inserts it.
LEAD = """
INSERT INTO broker_leads (id, request_id, client_name, phone, city, scenario)
    VALUES ('01988d5c-0000-7000-8000-00000000000a', 'IP-20270115-GENERATED', 'Борис', '79990000002', 'Псков', 'Покупка');
"""


class Document(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pillarbox = Pillarbox.dev(*(word for setting in SETTINGS for word in ("--set", setting)))
        cls.addClassCleanup(cls.pillarbox.close)
        cls.pillarbox.run("sql", "--write", stdin=LEAD)
        cls.there = cls.furnish()
        cls.report = cls.run_schemathesis()

    @classmethod
    def furnish(cls):
        """Some of everything, so that what is generated meets something; returns the ids."""
        url, key = cls.pillarbox.url, cls.pillarbox.ready["api_key"]

        def made(path, body):
            status, answer = cls.pillarbox.call("POST", path, body, secret=key)
            assert status in (201, 202), answer
            return answer

        # The first is everybody's parent, and nothing else is done with it.
        for uid in (1, 2, 3):
            body = {"link": f"leader-{uid}"} | ({"telegram_id": f"10{uid}"} if uid < 3 else {})
            status, answer = cls.pillarbox.call("PUT", f"/v1/members/{uid}", body, secret=key)
            assert status == 201, answer
        chat = {"telegramId": "103"}
        status, link = cls.pillarbox.call("POST", "/bot/telegram/connect-link", chat, secret=cls.pillarbox.ready["bot_secret"])
        assert status == 200, link
        sinks = [f"{url}/dev/sink/{name}" for name in ("one", "two", "three")]
        endpoints = [made("/v1/endpoints", {"url": sink})["id"] for sink in sinks * 2]
        event = {"type": "order.paid", "version": 1, "aggregate": {"type": "order", "id": "1"}, "data": {}}
        events = [made("/v1/events", event)["event_id"] for _ in range(3)]
        query = f"endpoint_id={endpoints[0]}&event_type=order.paid"

        def delivered():
            deliveries = cls.pillarbox.call("GET", f"/v1/deliveries?{query}", secret=key)[1]["items"]
            return len(deliveries) == len(events) and deliveries

        deliveries = eventually("deliveries to be made", delivered)
        return {
            "endpoint_id": endpoints[:3],
            "doomed": endpoints[3:],
            "event_id": events,
            "delivery_id": [delivery["id"] for delivery in deliveries],
            "url": sinks,
            "uid": ["2", "3"],
            "parent": [1, None],
            "telegram_id": ["101", "102", "103"],
            "code": ["leader-1", "leader-2"],
            "token": [link["token"]],
        }

    @classmethod
    def run_schemathesis(cls):
        ready = cls.pillarbox.ready
        told = {name.upper(): str(value) for name, value in ready.items()} | {"THERE": json.dumps(cls.there)}
        report = cls.pillarbox.folder / "report.json"
        line = [sys.executable, "-m", "schemathesis.cli", "--config-file", HERE / "schemathesis.toml"]
        line += ["run", f"{ready['url']}/openapi.json", "--report-json-path", report]
        env = BARE | told | {
            "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], str(HERE)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            line, cwd=cls.pillarbox.folder, env=env, capture_output=True, text=True, timeout=LONGEST_S
        )
        print(done.stdout, done.stderr, sep="\n")
        return json.loads(report.read_text())

    def test_everything_is_answered_as_the_document_says(self):
        self.assertEqual((self.report["failures"], self.report["errors"]), ([], []))
        self.assertEqual((self.report["exit_code"], self.report["complete"]), (0, True))

    def test_every_operation_was_called(self):
        with urllib.request.urlopen(f"{self.pillarbox.url}/openapi.json") as answer:
            document = json.load(answer)
        known = {f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item}
        # What the document was read from is not called again, and schemathesis.toml says why the other one is not called.
        uncalled = {"GET /openapi.json", "POST /telegram/webhook"}
        self.assertEqual(known - set(self.report["valid_rates"]), uncalled)

    def test_what_is_allowed_is_taken_by_every_operation(self):
        # A conflict is the right answer where things are as they are: an event that is published is not retried.
        taken = {
            operation: sum(phase["accepted"] + phase["conflicts"] for phase in phases.values())
            for operation, phases in self.report["valid_rates"].items()
        }
        self.assertEqual([operation for operation, times in taken.items() if times == 0], [])


if __name__ == "__main__":
    main()
