"""Other programs as producers: Python's own `sqlite3` and Debian's `sqlite3` shell insert events with plain SQL.

They know the table and nothing else, do it in their own transaction beside their own table, and have an older SQLite
than the server's.
"""

import json
import shutil
import sqlite3
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from pillarbox import Pillarbox, eventually, main

PEOPLE = """
INSERT INTO members (uid, name, telegram_id) VALUES (3, 'Boris', 103), (4, 'Vera', 104);
INSERT INTO bot_users (telegram_id, magnet_uid, first_name, lang)
    SELECT telegram_id, uid, name, 'en' FROM members;
CREATE TABLE shop_orders (id INTEGER PRIMARY KEY, buyer TEXT NOT NULL);
"""
INSERT = "INSERT INTO bot_event_outbox (event_type, magnet_uid, telegram_id, payload) VALUES (?, ?, ?, ?)"
NOTICED_S = 1.0


class Producer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pillarbox = Pillarbox.dev("--set", "telegram.chat_interval=0")
        cls.addClassCleanup(cls.pillarbox.close)
        cls.pillarbox.run("sql", "--write", stdin=PEOPLE)

    def setUp(self):
        # Transactions are begun and ended by the tests, as SQL.
        self.db = sqlite3.connect(self.pillarbox.data / "pillarbox.db", timeout=5, isolation_level=None)
        self.addCleanup(self.db.close)

    def one(self, sql, *values):
        return self.db.execute(sql, values).fetchone()

    def await_closed(self, event_id):
        query = "SELECT outcome FROM bot_event_outbox WHERE id = ? AND processed_at IS NOT NULL"
        self.assertEqual(eventually(f"event {event_id}", lambda: self.one(query, event_id)), ("handled",))

    def texts(self, chat_id, count):
        def look():
            _, answer = self.pillarbox.call("GET", f"/dev/telegram/messages?chat_id={chat_id}")
            return len(answer["messages"]) >= count and [message["text"] for message in answer["messages"]]

        return eventually(f"{count} messages to {chat_id}", look)

    def test_a_row_of_its_own_and_an_event_commit_together_and_are_noticed_within_a_second(self):
        took_s = []
        for buyer in range(5):
            self.db.execute("BEGIN IMMEDIATE")
            self.db.execute("INSERT INTO shop_orders (buyer) VALUES (?)", (f"buyer {buyer}",))
            event_id = self.db.execute(INSERT, ("wallet_connected", 500 + buyer, None, "{}")).lastrowid
            self.db.execute("COMMIT")
            committed = time.monotonic()
            self.await_closed(event_id)
            took_s.append(time.monotonic() - committed)
        self.assertEqual(self.one("SELECT count(*) FROM shop_orders WHERE buyer LIKE 'buyer %'"), (5,))
        # The median: this machine may be busy with something else for a moment.
        self.assertLess(sorted(took_s)[2], NOTICED_S, took_s)

    def test_events_of_one_transaction_are_handled_in_their_order(self):
        self.db.execute("BEGIN IMMEDIATE")
        for number in range(1, 11):
            for uid, chat_id in (3, 103), (4, 104):
                payload = json.dumps({"partnerUid": number, "partnerName": f"no. {number};"})
                self.db.execute(INSERT, ("new_partner", uid, chat_id, payload))
        self.db.execute("COMMIT")
        for chat_id in 103, 104:
            for number, text in enumerate(self.texts(chat_id, 10), 1):
                self.assertIn(f"no. {number};", text)

    def test_a_transaction_that_is_rolled_back_leaves_nothing(self):
        self.db.execute("BEGIN IMMEDIATE")
        self.db.execute("INSERT INTO shop_orders (buyer) VALUES ('nobody')")
        self.db.execute(INSERT, ("wallet_connected", 600, None, None))
        self.db.execute("ROLLBACK")
        marker = self.db.execute(INSERT, ("wallet_connected", 601, None, None)).lastrowid
        self.await_closed(marker)
        self.assertEqual(self.one("SELECT count(*) FROM shop_orders WHERE buyer = 'nobody'"), (0,))
        self.assertEqual(self.one("SELECT count(*) FROM bot_event_outbox WHERE magnet_uid = 600"), (0,))
        self.assertIsNone(self.one("SELECT 1 FROM bot_event_lanes WHERE subject = 'uid:600'"))

    def test_the_schema_fills_in_subject_lane_and_time(self):
        # Looked at before the commit, since afterwards the consumer is quick.
        # The chat 103 is bound to the member 3; a member that is named comes first.
        known = [(700, None, "uid:700"), (None, 701, "tg:701"), (None, 103, "uid:3"), (702, 103, "uid:702")]
        for uid, chat_id, subject in known:
            with self.subTest(subject):
                self.db.execute("BEGIN IMMEDIATE")
                event_id = self.db.execute(INSERT, ("reactivation", uid, chat_id, None)).lastrowid
                row = self.one("SELECT subject, attempts, created_at FROM bot_event_outbox WHERE id = ?", event_id)
                self.assertEqual(row[:2], (subject, 0))
                self.assertAlmostEqual(row[2] / 1000, time.time(), delta=60)
                lane = self.one("SELECT head_id, due_at FROM bot_event_lanes WHERE subject = ?", subject)
                self.assertEqual(lane, (event_id, 0))
                self.db.execute("ROLLBACK")

    def test_the_schema_refuses_what_is_no_event(self):
        for row in [
            ("wallet_connected", None, None, "{}"),
            ("wallet_connected", 800, None, "not json"),
            ("wallet_connected", 800, None, "[]"),
            ("", 800, None, "{}"),
            (None, 800, None, "{}"),
            ("wallet_connected", "eight hundred", None, "{}"),
        ]:
            with self.subTest(row), self.assertRaises(sqlite3.IntegrityError):
                self.db.execute(INSERT, row)
        self.assertEqual(self.one("SELECT count(*) FROM bot_event_outbox WHERE magnet_uid = 800"), (0,))

    def test_a_dedup_key_counts_once_whoever_uses_it(self):
        insert = """
            INSERT OR IGNORE INTO bot_event_outbox (event_type, magnet_uid, dedup_key)
            VALUES ('reactivation', 900, 'sync:900')
        """
        event_id = self.db.execute(insert).lastrowid
        self.assertEqual(self.db.execute(insert).rowcount, 0)
        body = {"eventType": "reactivation", "magnetUid": 900, "dedupKey": "sync:900"}
        answer = self.pillarbox.call("POST", "/bot/events", body, self.pillarbox.ready["bot_secret"])
        self.assertEqual(answer, (200, {"id": event_id}))

    def test_the_server_waits_while_another_program_writes(self):
        body = {"eventType": "reactivation", "magnetUid": 901}
        with ThreadPoolExecutor() as pool:
            self.db.execute("BEGIN IMMEDIATE")
            self.db.execute("INSERT INTO shop_orders (buyer) VALUES ('slow')")
            answer = pool.submit(self.pillarbox.call, "POST", "/bot/events", body, self.pillarbox.ready["bot_secret"])
            time.sleep(0.5)
            self.assertFalse(answer.done(), "it wrote although another program held the lock")
            self.db.execute("COMMIT")
            self.assertEqual(answer.result()[0], 201)

    @unittest.skipUnless(shutil.which("sqlite3"), "Debian's sqlite3 is not installed")
    def test_the_sqlite3_shell_can_do_it_too(self):
        script = """
            PRAGMA busy_timeout = 5000;
            BEGIN IMMEDIATE;
            INSERT INTO shop_orders (buyer) VALUES ('shell');
            INSERT INTO bot_event_outbox (event_type, magnet_uid) VALUES ('wallet_connected', 1000);
            INSERT INTO bot_event_outbox (event_type, magnet_uid) VALUES ('registered', 1000);
            SELECT group_concat(subject) FROM bot_event_outbox WHERE magnet_uid = 1000;
            COMMIT;
        """
        shell = ["sqlite3", "-batch", "-bail", self.pillarbox.data / "pillarbox.db"]
        done = subprocess.run(shell, input=script, capture_output=True, text=True, timeout=15)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("uid:1000,uid:1000", done.stdout)
        rows = self.db.execute("SELECT id FROM bot_event_outbox WHERE magnet_uid = 1000 ORDER BY id").fetchall()
        for [event_id] in rows:
            self.await_closed(event_id)
        self.assertEqual(len(rows), 2)


class WithoutAServer(unittest.TestCase):
    def test_rows_that_are_written_while_no_server_runs_wait_for_one(self):
        pillarbox = Pillarbox.dev()
        self.addCleanup(pillarbox.close)
        pillarbox.stop()
        with closing(sqlite3.connect(pillarbox.data / "pillarbox.db", isolation_level=None)) as db:
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            db.execute(INSERT, ("wallet_connected", 1100, None, "{}"))
        pillarbox.start()
        with closing(sqlite3.connect(pillarbox.data / "pillarbox.db")) as db:
            query = "SELECT 1 FROM bot_event_outbox WHERE magnet_uid = 1100 AND outcome = 'handled'"
            eventually("the event to be handled", lambda: db.execute(query).fetchone())
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])


if __name__ == "__main__":
    main()
