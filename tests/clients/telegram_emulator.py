"""The real `pillarbox serve` against a Bot API that somebody else wrote: PyPI's `lo-bot-api-emulator`.

It refuses unknown parameters, malformed keyboards and what Telegram would not take, and its journal gives a verdict. So
what arrives there is the protocol, and not what our own fake happens to accept.
"""

import asyncio
import json
import pathlib
import socket
import tempfile
import threading
import time
import unittest
import urllib.request

from aiohttp import web
from lo_bot_api_emulator import CONTRACT, LoBotApiEmulator, verdict

from pillarbox import Pillarbox, eventually, main

SECRET = "a-secret-between-bot-and-backend"
TOKEN = "123456789:AAsomebody-elses_token-0123456789abc"
# Of the bot that has a webhook: a token has one way to hear.
HOOKED = "987654321:AAanother-bots_token-0123456789abcdefg"
LEADER = "INSERT INTO members (uid, link, name) VALUES (77, 'boris', 'Boris');"
PEOPLE = LEADER + """
INSERT INTO bot_users (telegram_id, magnet_uid, first_name, lang) VALUES
    (103, 3, 'Boris', 'en'), (107, NULL, 'Anna', 'ru'), (109, 9, 'Clara', 'en'), (9007199254740993, 11, 'Dmitri', 'en')
"""


def now_ms():
    return int(time.time() * 1000)


def private(chat_id):
    return {"id": chat_id, "type": "private", "first_name": "Eve"}


def user(chat_id):
    return {"id": chat_id, "is_bot": False, "first_name": "Eve", "language_code": "en"}


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
        emulator = LoBotApiEmulator(
            journal=self.journal, enable_control=True, allow_insecure_loopback_webhooks=True
        )
        app = emulator.app()
        app.middlewares.append(self._note)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    @web.middleware
    async def _note(self, request, handler):
        # Telegram takes method names in any case, and teloxide relies on that; the emulator does not.
        if "method" not in request.match_info:
            return await handler(request)
        method = request.match_info["method"]
        method = request.match_info["method"] = self._names.get(method.lower(), method)
        answer = await handler(request)
        self.arrived.append((request.match_info["token"], answer.status, method, await request.json()))
        return answer

    def called(self, token, method):
        """What a bot's accepted calls of a method said, in order."""
        return [body for its, status, name, body in self.arrived if (its, status, name) == (token, 200, method)]

    def to(self, chat_id, token=TOKEN, method="sendMessage"):
        """What was accepted for a chat, in order."""
        return [body for body in self.called(token, method) if body["chat_id"] == chat_id]

    def control(self, what, **body):
        """Asks the emulator itself: `updates` queues one, `deliver` brings what is queued to the webhook."""
        request = urllib.request.Request(
            f"{self.url}/__fixture/{what}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=15) as answer:
            return json.loads(answer.read())["result"]

    def says(self, token, chat_id, text):
        message = {"message_id": 1, "date": 1, "chat": private(chat_id), "from": user(chat_id), "text": text}
        return self.control("updates", token=token, update={"message": message})

    def taps(self, token, chat_id, message_id, data, tap):
        message = {"message_id": message_id, "date": 1, "chat": private(chat_id), "text": "…"}
        query = {"id": tap, "from": user(chat_id), "chat_instance": "1", "message": message, "data": data}
        return self.control("updates", token=token, update={"callback_query": query})

    def stop(self):
        self._await(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._folder.cleanup()


def setUpModule():
    global emulator, pillarbox, hooked
    emulator = Emulator()
    unittest.addModuleCleanup(emulator.stop)
    settings = f"telegram.api_url={emulator.url}", "telegram.chat_interval=0"
    pillarbox = Pillarbox.serve(*settings, BOT_TO_BACKEND_SECRET=SECRET, TELEGRAM_BOT_TOKEN=TOKEN)
    unittest.addModuleCleanup(pillarbox.close)
    pillarbox.run("sql", "--write", stdin=PEOPLE)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    hooks = "telegram.updates=webhook", f"telegram.webhook_url=http://{address}/telegram/webhook"
    hooked = Pillarbox.serve(*settings, *hooks, listen=address, BOT_TO_BACKEND_SECRET=SECRET, TELEGRAM_BOT_TOKEN=HOOKED)
    unittest.addModuleCleanup(hooked.close)
    hooked.run("sql", "--write", stdin=LEADER)


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
        [button] = message["reply_markup"]["inline_keyboard"][0]
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


def converse(case, token, chat_id, deliver):
    """`/start` with a link, a language chosen on the keyboard, and the message that takes its place."""
    emulator.says(token, chat_id, "/start boris")
    deliver()
    [greeting] = eventually("the greeting", lambda: emulator.to(chat_id, token))
    buttons = [button for row in greeting["reply_markup"]["inline_keyboard"] for button in row]
    case.assertIn("l:en", [button["callback_data"] for button in buttons])
    case.assertTrue(all(len(button["callback_data"].encode()) <= 64 for button in buttons))
    emulator.taps(token, chat_id, emulator_message_id(chat_id), "l:en", f"tap-{chat_id}")
    deliver()
    answers = eventually("the tap's answer", lambda: emulator.called(token, "answerCallbackQuery"))
    case.assertEqual(answers, [{"callback_query_id": f"tap-{chat_id}"}])
    [edited] = eventually("the changed message", lambda: emulator.to(chat_id, token, "editMessageText"))
    case.assertIn("reply_markup", edited)


def emulator_message_id(chat_id):
    """The newest message of the bot in a chat, as our file knows it."""
    server = pillarbox if chat_id == 201 else hooked
    told = server.run(
        "sql", "--json",
        f"SELECT MAX(telegram_message_id) AS id FROM telegram_messages WHERE chat_id = {chat_id}",
    )
    return json.loads(told)["id"]


class Updates(unittest.TestCase):
    """What a person does there is heard here: fetched, and brought to a webhook."""

    def test_a_conversation_by_long_polling(self):
        converse(self, TOKEN, 201, lambda: None)
        for poll in emulator.called(TOKEN, "getUpdates"):
            self.assertEqual(poll["allowed_updates"], ["message", "callback_query", "my_chat_member"])

    def test_a_conversation_by_webhook(self):
        [hook] = eventually("the webhook", lambda: emulator.called(HOOKED, "setWebhook"))
        self.assertEqual(hook["allowed_updates"], ["message", "callback_query", "my_chat_member"])
        self.assertRegex(hook["secret_token"], "^[0-9a-f]{64}$")
        converse(self, HOOKED, 202, lambda: emulator.control("deliver", token=HOOKED))
        self.assertEqual(emulator.called(HOOKED, "getUpdates"), [])


class UpdatesVerdict(unittest.TestCase):
    """On everything above: classes run in the order of their names."""

    def test_nothing_else_was_refused(self):
        found = verdict(
            emulator.journal,
            require_response=True,
            require_methods=[
                "getUpdates", "sendMessage", "editMessageText", "answerCallbackQuery", "setWebhook", "getWebhookInfo",
            ],
            allowed_refusals=["sendMessage:400"],
        )
        self.assertTrue(found["ok"], found)
        refused = [body["chat_id"] for _, status, _, body in emulator.arrived if status != 200]
        self.assertEqual(refused, [109])

    def test_every_call_had_the_token_and_no_log_line_has_it(self):
        self.assertEqual({token for token, *_ in emulator.arrived}, {TOKEN, HOOKED})
        for server in pillarbox, hooked:
            self.assertNotIn(TOKEN.split(":")[1], server.log())
            self.assertNotIn(HOOKED.split(":")[1], server.log())


if __name__ == "__main__":
    main()
