"""A stock bot as a client of `pillarbox fake`: PyPI's `python-telegram-bot`, unchanged.

It parses every answer into typed objects and turns refusals into its own exceptions, so it shows that the fake is
strict and complete enough for somebody else's integration tests. Nothing here knows how the fake works inside.
"""

import asyncio
import http.server
import json
import queue
import threading
import unittest

from telegram import Bot, BotCommand, InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.constants import ParseMode
from telegram.error import BadRequest, Conflict, Forbidden, RetryAfter, TimedOut
from telegram.ext import Application, CallbackQueryHandler, CommandHandler

from pillarbox import Pillarbox, main

TOKEN = "123456789:AAa-token-that-no-bot-has_0123456789"
KEYBOARD = InlineKeyboardMarkup(
    [
        [InlineKeyboardButton("Yes", callback_data="yes"), InlineKeyboardButton("No", callback_data="no")],
        [InlineKeyboardButton("Site", url="https://example.org/?a=1&b=2")],
    ]
)


def person(chat_id):
    return {"id": chat_id, "is_bot": False, "first_name": "Anna", "language_code": "en"}


def says(chat_id, text, **more):
    """An update as Telegram sends it when a person writes to the bot."""
    chat = {"id": chat_id, "type": "private", "first_name": "Anna"}
    message = {"message_id": 1, "date": 1_750_000_000, "chat": chat, "from": person(chat_id), "text": text}
    return {"message": message | more}


def command(chat_id, text):
    return says(chat_id, text, entities=[{"type": "bot_command", "offset": 0, "length": len(text.split()[0])}])


def taps(chat_id, message, data):
    query = {"id": f"tap-{chat_id}", "from": person(chat_id), "chat_instance": "1", "data": data}
    return {"callback_query": query | {"message": message.to_dict()}}


class StockBot(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.pillarbox = Pillarbox.fake()
        cls.addClassCleanup(cls.pillarbox.close)

    async def asyncSetUp(self):
        self.application = Application.builder().token(TOKEN).base_url(f"{self.pillarbox.url}/bot").build()
        # Calls getMe, and everything else needs its answer.
        await self.application.initialize()
        self.addAsyncCleanup(self.application.shutdown)
        self.bot = self.application.bot
        await self.bot.delete_webhook(drop_pending_updates=True)

    async def dev(self, method, path, body=None):
        status, answer = await asyncio.to_thread(self.pillarbox.call, method, f"/dev/telegram/{path}", body)
        self.assertEqual(status, 200, answer)
        return answer

    async def next_accepted(self, chat_id, count):
        async with asyncio.timeout(15):
            while True:
                accepted = (await self.dev("GET", f"messages?chat_id={chat_id}"))["messages"]
                if len(accepted) >= count:
                    return accepted
                await asyncio.sleep(0.02)

    async def test_get_me_names_a_bot(self):
        me = await self.bot.get_me()
        self.assertTrue(me.is_bot)
        self.assertTrue(me.username.endswith("bot"))

    async def test_a_message_comes_back_with_its_entities_and_its_keyboard(self):
        sent = await self.bot.send_message(201, "<b>Hello</b> &amp; <i>bye</i>", ParseMode.HTML, reply_markup=KEYBOARD)
        self.assertEqual((sent.chat_id, sent.text), (201, "Hello & bye"))
        self.assertEqual(list(sent.parse_entities().values()), ["Hello", "bye"])
        self.assertEqual(sent.reply_markup, KEYBOARD)
        [accepted] = await self.next_accepted(201, 1)
        self.assertEqual(accepted["message_id"], sent.message_id)
        self.assertEqual(accepted["reply_markup"], KEYBOARD.to_dict())

    async def test_an_edit_changes_text_and_keyboard(self):
        sent = await self.bot.send_message(202, "before", reply_markup=KEYBOARD)
        edited = await self.bot.edit_message_text("after", chat_id=202, message_id=sent.message_id)
        self.assertEqual((edited.message_id, edited.text, edited.reply_markup), (sent.message_id, "after", None))
        self.assertIsNotNone(edited.edit_date)
        with self.assertRaisesRegex(BadRequest, "Message is not modified"):
            await sent.edit_text("after")

    async def test_what_telegram_refuses_is_refused(self):
        too_much_data = InlineKeyboardMarkup([[InlineKeyboardButton("x", callback_data="x" * 65)]])
        for text, more, why in [
            ("", {}, "text is empty"),
            ("x" * 4097, {}, "too long"),
            ("<b>open", {"parse_mode": "HTML"}, "parse entities"),
            ("text", {"parse_mode": "BBCode"}, "parse_mode"),
            ("text", {"reply_markup": too_much_data}, "(?i)button_data_invalid"),
        ]:
            with self.subTest(why), self.assertRaisesRegex(BadRequest, why):
                await self.bot.send_message(203, text, **more)
        with self.assertRaisesRegex(BadRequest, "Query is too old"):
            await self.bot.answer_callback_query("never tapped")

    async def test_a_long_poll_ends_when_an_update_comes(self):
        waiting = asyncio.create_task(self.bot.get_updates(timeout=10))
        await asyncio.sleep(0.3)
        self.assertFalse(waiting.done(), "an empty queue was answered at once")
        await self.dev("POST", "updates", says(204, "hello"))
        [update] = await asyncio.wait_for(waiting, 5)
        self.assertEqual((update.message.chat_id, update.message.text), (204, "hello"))
        # It comes again until a higher offset has confirmed it.
        [again] = await self.bot.get_updates()
        self.assertEqual(again.update_id, update.update_id)
        self.assertEqual(await self.bot.get_updates(offset=update.update_id + 1), ())

    async def test_the_newest_of_two_polls_is_served(self):
        older = asyncio.create_task(self.bot.get_updates(timeout=10))
        await asyncio.sleep(0.3)
        # Another client: this one keeps a single connection for its polls.
        async with Bot(TOKEN, base_url=f"{self.pillarbox.url}/bot") as other:
            newer = asyncio.create_task(other.get_updates(timeout=10))
            with self.assertRaises(Conflict):
                await asyncio.wait_for(older, 5)
            await self.dev("POST", "updates", says(205, "hello"))
            self.assertEqual(len(await asyncio.wait_for(newer, 5)), 1)

    async def test_a_429_becomes_its_retry_after(self):
        await self.dev("POST", "faults", {"method": "sendMessage", "chat_id": 206, "retry_after": 7})
        with self.assertRaises(RetryAfter) as limited:
            await self.bot.send_message(206, "too soon")
        self.assertEqual(int(limited.exception._retry_after.total_seconds()), 7)
        self.assertEqual((await self.bot.send_message(206, "later")).text, "later")

    async def test_a_403_becomes_its_forbidden(self):
        await self.dev("POST", "faults", {"chat_id": 207, "status": 403})
        with self.assertRaisesRegex(Forbidden, "bot was blocked by the user"):
            await self.bot.send_message(207, "hello?")
        self.assertEqual(await self.dev("GET", "messages?chat_id=207"), {"messages": []})

    async def test_a_late_answer_becomes_its_time_out_and_the_message_is_there(self):
        await self.dev("POST", "faults", {"chat_id": 208, "delay_ms": 1500})
        with self.assertRaises(TimedOut):
            await self.bot.send_message(208, "did it arrive?", read_timeout=0.3)
        [accepted] = await self.next_accepted(208, 1)
        self.assertEqual(accepted["text"], "did it arrive?")

    async def test_commands_are_kept(self):
        commands = BotCommand("start", "Begin"), BotCommand("help", "Ask for help")
        self.assertTrue(await self.bot.set_my_commands(commands))
        self.assertEqual(await self.bot.get_my_commands(), commands)

    async def test_a_webhook_is_set_called_shown_and_deleted(self):
        with Receiver() as receiver:
            wanted = {"max_connections": 5, "allowed_updates": ["message"]}
            await self.bot.set_webhook(receiver.url, secret_token="s3cret", **wanted)
            info = await self.bot.get_webhook_info()
            self.assertEqual((info.url, info.max_connections), (receiver.url, 5))
            self.assertEqual(info.allowed_updates, ("message",))
            await self.dev("POST", "updates", says(209, "by webhook"))
            secret, body = await asyncio.to_thread(receiver.received.get, timeout=10)
            self.assertEqual((secret, Update.de_json(body, self.bot).message.text), ("s3cret", "by webhook"))
            with self.assertRaises(Conflict):
                await self.bot.get_updates()
        self.assertTrue(await self.bot.delete_webhook())
        self.assertEqual((await self.bot.get_webhook_info()).url, "")
        # The list outlives the webhook, as with Telegram; an empty one is the default again.
        await self.bot.get_updates(allowed_updates=[])

    async def test_a_whole_bot_answers_a_command_and_a_tap(self):
        async def start(update, context):
            await update.message.reply_text(f"Welcome by {context.args[0]}", reply_markup=KEYBOARD)

        async def tapped(update, _):
            await update.callback_query.answer("noted")
            await update.callback_query.edit_message_text(f"You said {update.callback_query.data}")

        self.application.add_handlers([CommandHandler("start", start), CallbackQueryHandler(tapped)])
        await self.application.updater.start_polling(timeout=5, poll_interval=0, bootstrap_retries=0)
        await self.application.start()
        try:
            await self.dev("POST", "updates", command(210, "/start code7"))
            [welcome] = await self.next_accepted(210, 1)
            self.assertEqual(welcome["text"], "Welcome by code7")
            sent = await self.bot.send_message(211, "a message to tap on", reply_markup=KEYBOARD)
            await self.dev("POST", "updates", taps(211, sent, "yes"))
            accepted = await self.next_accepted(211, 2)
            self.assertEqual((accepted[1]["method"], accepted[1]["text"]), ("editMessageText", "You said yes"))
            self.assertEqual(accepted[1]["message_id"], sent.message_id)
        finally:
            await self.application.updater.stop()
            await self.application.stop()


class Receiver(http.server.ThreadingHTTPServer):
    """A bot's webhook: keeps what comes, with the secret it came under."""

    def __init__(self):
        self.received = queue.Queue()
        super().__init__(("127.0.0.1", 0), self.Request)
        self.url = f"http://127.0.0.1:{self.server_port}/hook"

    class Request(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.server.received.put((self.headers["X-Telegram-Bot-Api-Secret-Token"], body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    def __enter__(self):
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self._thread.join()
        self.server_close()


if __name__ == "__main__":
    main()
