"""The real `pillarbox serve` against a Bot API that somebody else wrote: PyPI's `lo-bot-api-emulator`.

It refuses unknown parameters, malformed keyboards and what Telegram would not take, and its journal gives a verdict. So
what arrives there is the protocol, and not what our own fake happens to accept.
"""

import asyncio
import json
import pathlib
import tempfile
import threading
import time
import unittest

from aiohttp import web
from lo_bot_api_emulator import CONTRACT, LoBotApiEmulator, verdict

from pillarbox import Pillarbox, eventually, main

SECRET = "a-secret-between-bot-and-backend"
TOKEN = "123456789:AAsomebody-elses_token-0123456789abc"
PEOPLE = """
INSERT INTO bot_users (telegram_id, magnet_uid, first_name, lang) VALUES
    (103, 3, 'Boris', 'en'), (107, NULL, 'Anna', 'ru'), (109, 9, 'Clara', 'en'), (9007199254740993, 11, 'Dmitri', 'en')
"""


def now_ms():
    return int(time.time() * 1000)


class Emulator:
    """The emulator on a port of its own. It keeps no texts, so what arrives is noted on its way in."""

    def __init__(self):
        self.arrived = []
        self._folder = tempfile.TemporaryDirectory()
        self.journal = pathlib.Path(self._folder.name) / "journal.ndjson"
        self._names = {name.lower(): name for name in CONTRACT["methods"]}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.url = self._await(self._start())

    def _await(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=15)

    async def _start(self):
        app = LoBotApiEmulator(journal=self.journal).app()
        app.middlewares.append(self._note)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    @web.middleware
    async def _note(self, request, handler):
        # Telegram takes method names in any case, and teloxide relies on that; the emulator does not.
        method = request.match_info["method"]
        request.match_info["method"] = self._names.get(method.lower(), method)
        answer = await handler(request)
        self.arrived.append((request.match_info["token"], answer.status, await request.json()))
        return answer

    def to(self, chat_id):
        """What was accepted for a chat, in order."""
        return [body for _, status, body in self.arrived if status == 200 and body["chat_id"] == chat_id]

    def stop(self):
        self._await(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._folder.cleanup()


def setUpModule():
    global emulator, pillarbox
    emulator = Emulator()
    unittest.addModuleCleanup(emulator.stop)
    settings = f"telegram.api_url={emulator.url}", "telegram.chat_interval=0"
    pillarbox = Pillarbox.serve(*settings, BOT_TO_BACKEND_SECRET=SECRET, TELEGRAM_BOT_TOKEN=TOKEN)
    unittest.addModuleCleanup(pillarbox.close)
    pillarbox.run("sql", "--write", stdin=PEOPLE)


class Messages(unittest.TestCase):
    def emit(self, event_type, uid, chat_id, **payload):
        body = {"eventType": event_type, "magnetUid": uid, "telegramId": str(chat_id), "payload": payload}
        status, answer = pillarbox.call("POST", "/bot/events", body, SECRET)
        self.assertEqual(status, 201, answer)

    def messages(self, count, chat_id):
        return eventually(
            f"{count} messages to {chat_id}",
            lambda: len(emulator.to(chat_id)) >= count and emulator.to(chat_id),
        )

    def test_an_event_arrives_with_its_markup_and_its_parse_mode(self):
        self.emit("new_partner", 3, 103, partnerUid=7, partnerName="Anna <3")
        [message] = self.messages(1, 103)
        self.assertEqual(message["parse_mode"], "HTML")
        self.assertIn("<b>Anna &lt;3</b>", message["text"])
        self.assertNotIn("reply_markup", message)

    def test_a_prompt_arrives_with_its_inline_keyboard(self):
        self.emit("wallet_connected", 7, 107, preview=True)
        [message] = self.messages(1, 107)
        [[button]] = message["reply_markup"]["inline_keyboard"]
        self.assertEqual(button, {"text": "✅ Да, привязать", "callback_data": "bind:7"})
        self.assertIn("№ 7", message["text"])

    def test_messages_of_one_chat_arrive_in_the_order_of_their_events(self):
        chat_id = 9007199254740993  # no float can hold it
        for uid in range(1, 21):
            self.emit("new_partner", 11, chat_id, partnerUid=uid, partnerName=f"partner {uid}.")
        texts = [message["text"] for message in self.messages(20, chat_id)]
        self.assertEqual(len(texts), 20)
        for uid, text in enumerate(texts, 1):
            self.assertIn(f"partner {uid}.", text)

    def test_a_refusal_there_is_an_outcome_here(self):
        # Events make no message of this length; whatever is queued is sent as it stands.
        fallback = json.dumps(
            {"notification": {"magnetUid": 9, "kind": "new_partner", "title": "A partner", "body": "Somebody joined."}}
        )
        pillarbox.run(
            "sql", "--write",
            f"""INSERT INTO telegram_messages
                  (chat_id, kind, lane, text, format, dedup_key, due_at, waiting_since, created_at, fallback)
                VALUES (109, 'event', 'transactional', '{"x" * 5000}', 'plain', 'too long', 0, {now_ms()}, {now_ms()},
                        '{fallback}')""",
        )
        told = eventually(
            "the web notification instead",
            lambda: pillarbox.run("sql", "SELECT magnet_uid, kind FROM web_notifications"),
        )
        self.assertIn("new_partner", told)
        listed = pillarbox.run("messages", "list", "--chat", "109", "--json")
        self.assertIn('"undeliverable"', listed)
        self.assertIn('"too_long"', listed)
        self.assertEqual(emulator.to(109), [])


class TheVerdict(unittest.TestCase):
    """On everything above: classes run in the order of their names."""

    def test_nothing_else_was_refused(self):
        found = verdict(
            emulator.journal,
            require_response=True,
            require_methods=["sendMessage"],
            allowed_refusals=["sendMessage:400"],
        )
        self.assertTrue(found["ok"], found)
        self.assertEqual([body["chat_id"] for _, status, body in emulator.arrived if status != 200], [109])

    def test_every_call_had_the_token_and_no_log_line_has_it(self):
        self.assertEqual({token for token, _, _ in emulator.arrived}, {TOKEN})
        self.assertNotIn(TOKEN.split(":")[1], pillarbox.log())


if __name__ == "__main__":
    main()
