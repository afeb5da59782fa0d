"""PostgREST's stock client for Python (PyPI: postgrest) calls the functions of the leads' contract, unchanged.

`pillarbox dev` runs with `leads.delivery=rpc`, so that nobody but this script claims. The leads are inserted by SQL, as
another program does it.
"""

import unittest
import uuid
from concurrent.futures import ThreadPoolExecutor

from postgrest import APIError, SyncPostgrestClient

from pillarbox import Pillarbox, main

SUMMARY = "broker_lead_notification_summary"
CLAIM = "claim_broker_lead_notification"
COMPLETE = "complete_broker_lead_notification"
RETRY = "request_broker_lead_notification_retry"
INSERT = """
INSERT INTO broker_leads (id, request_id, client_name, phone, city, scenario)
    VALUES ('{id}', '{request}', 'Борис', '79990000002', 'Псков', 'Покупка квартиры');
"""


class Functions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pillarbox = Pillarbox.dev("--set", "leads.delivery=rpc")
        cls.addClassCleanup(cls.pillarbox.close)

    def setUp(self):
        self.client = self.of(self.pillarbox.ready["service_role_key"])

    def of(self, key):
        client = SyncPostgrestClient(f"{self.pillarbox.url}/rest/v1", headers={"apikey": key})
        self.addCleanup(client.session.close)
        return client

    def lead(self):
        ids = {"id": str(uuid.uuid4()), "request": str(uuid.uuid4())}
        self.pillarbox.run("sql", "--write", stdin=INSERT.format(**ids))
        return {"p_lead_id": ids["id"], "p_request_id": ids["request"]}

    def call(self, function, arguments):
        return self.client.rpc(function, arguments).execute().data

    def assert_refused(self, code, request):
        with self.assertRaises(APIError) as refused:
            request.execute()
        error = refused.exception
        self.assertEqual(error.code, code)
        self.assertEqual(set(error.json()), {"code", "message", "details", "hint"})
        return error

    def test_a_lead_is_claimed_told_of_and_completed(self):
        lead = self.lead()
        won = [{"claimed": True, "current_status": "sending", "attempt_count": 1}]
        self.assertEqual(self.call(CLAIM, lead), won)
        self.assertEqual(self.call(CLAIM, lead), [won[0] | {"claimed": False}])
        text = self.call(SUMMARY, {"p_lead_id": lead["p_lead_id"]})
        self.assertIn(f"ID: {lead['p_request_id']}\nИмя: Борис\n", text)
        self.assertEqual(self.call(COMPLETE, lead | {"p_success": True, "p_error": None}), "sent")
        self.assertEqual(self.call(COMPLETE, lead | {"p_success": True, "p_error": None}), "unchanged")

    def test_single_gives_the_one_row(self):
        row = self.client.rpc(CLAIM, self.lead()).single().execute().data
        self.assertEqual(row, {"claimed": True, "current_status": "sending", "attempt_count": 1})

    def test_a_retry_follows_a_failure_and_the_fence_holds(self):
        lead = self.lead()
        self.call(CLAIM, lead)
        failed = {"p_success": False, "p_error": "telegram_timeout", "p_attempt_count": 1}
        self.assertEqual(self.call(COMPLETE, lead | failed), "failed")
        asked = lead | {"p_reason_code": "manual_recovery"}
        retried = {"retry_requested": True, "current_status": "pending", "retry_count": 1}
        self.assertEqual(self.call(RETRY, asked), [retried])
        self.assertEqual(self.call(CLAIM, lead)[0]["attempt_count"], 2)
        self.assertEqual(self.call(COMPLETE, lead | failed), "unchanged")
        self.assertEqual(self.call(COMPLETE, lead | {"p_success": True, "p_error": None, "p_attempt_count": 2}), "sent")

    def test_of_64_claims_at_once_one_wins(self):
        lead = self.lead()
        with ThreadPoolExecutor(16) as pool:
            rows = list(pool.map(lambda _: self.call(CLAIM, lead), range(64)))
        self.assertEqual(sum(row[0]["claimed"] for row in rows), 1)

    def test_the_summary_is_read_by_get_too_and_a_claim_is_not(self):
        lead = self.lead()
        told = self.client.rpc(SUMMARY, {"p_lead_id": lead["p_lead_id"]}, get=True).execute().data
        self.assertIn(lead["p_request_id"], told)
        self.assert_refused("25006", self.client.rpc(CLAIM, lead, get=True))
        self.assertEqual(self.call(CLAIM, lead)[0]["attempt_count"], 1)

    def test_unknown_ids_reasons_functions_and_arguments_are_errors(self):
        nobody = {"p_lead_id": str(uuid.uuid4())}
        error = self.assert_refused("P0001", self.client.rpc(SUMMARY, nobody))
        self.assertEqual((error.message, error.details, error.hint), ("broker_lead_not_found", None, None))
        missing = {"claimed": False, "current_status": "missing", "attempt_count": 0}
        self.assertEqual(self.call(CLAIM, nobody | {"p_request_id": None}), [missing])
        because = nobody | {"p_request_id": None, "p_reason_code": "because"}
        self.assertEqual(self.assert_refused("P0001", self.client.rpc(RETRY, because)).message, "unknown_retry_reason")
        self.assert_refused("22P02", self.client.rpc(SUMMARY, {"p_lead_id": "x"}))
        self.assert_refused("PGRST202", self.client.rpc(SUMMARY, {"lead": "x"}))
        self.assert_refused("PGRST202", self.client.rpc("no_such_function", nobody))
        self.assert_refused("PGRST106", self.client.schema("private").rpc(SUMMARY, nobody))
        self.assert_refused("PGRST107", self.client.rpc(SUMMARY, nobody).csv())

    def test_only_the_service_key_may_call_and_others_learn_nothing(self):
        lead = self.lead()
        ready = self.pillarbox.ready
        wrong = [(ready["anon_key"], "42501"), ("wrong", "PGRST301"), (ready["service_role_key"][1:], "PGRST301")]
        for key, code in wrong:
            told = {
                str(self.assert_refused(code, self.of(key).rpc(SUMMARY, {"p_lead_id": lead_id})).json())
                for lead_id in (lead["p_lead_id"], str(uuid.uuid4()), "x")
            }
            self.assertEqual(len(told), 1)
            self.assert_refused(code, self.of(key).rpc(CLAIM, lead))
        # The bearer counts over the key beside it.
        bearer = SyncPostgrestClient(f"{self.pillarbox.url}/rest/v1", headers={"apikey": "wrong"})
        self.addCleanup(bearer.session.close)
        bearer.auth(ready["service_role_key"])
        self.assertEqual(bearer.rpc(CLAIM, lead).execute().data[0]["attempt_count"], 1)


if __name__ == "__main__":
    main()
