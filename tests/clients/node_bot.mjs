// A bot in Node that consumes the outbox contract, as the first one did: it polls, groups by identity, sorts by id, and
// acknowledges with plain ids. Its HTTP clients are stock: axios from npm, and Node's own fetch.
//
// `pillarbox dev` is the backend, with `bot.event_source=off`, so that fetching is left to us, and with its clock, so
// that hours of back-off pass at once.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { PATIENCE_MS, Pillarbox, pinned } from "./pillarbox.mjs";

const axios = pinned("axios");

let server;
let ready;
let http;

before(async () => {
  server = await Pillarbox.dev("bot.event_source=off");
  ready = server.ready;
  http = axios.create({
    baseURL: ready.url,
    headers: { Authorization: `Bearer ${ready.bot_secret}` },
    timeout: PATIENCE_MS,
    validateStatus: () => true,
  });
});

after(() => server.close());

/** The consumer. `handle` is what a bot does with an event; one that throws is to come again. */
class OutboxConsumer {
  handled = [];

  constructor(handle = () => {}) {
    this.handle = handle;
  }

  /** One pass: a page, each person's events in their order up to the first that fails, one acknowledgement. */
  async poll() {
    const { data } = await http.get("/bot/events/pending", { params: { limit: 100 } });
    const byIdentity = new Map();
    for (const event of data.events) {
      const identity = event.magnetUid ?? event.telegramId;
      byIdentity.set(identity, [...(byIdentity.get(identity) ?? []), event]);
    }
    const processedIds = [];
    const retryIds = [];
    for (const events of byIdentity.values()) {
      events.sort((a, b) => a.id - b.id);
      for (const event of events) {
        try {
          await this.handle(event);
        } catch {
          retryIds.push(event.id);
          break;
        }
        this.handled.push(event.id);
        processedIds.push(event.id);
      }
    }
    if (processedIds.length + retryIds.length === 0) return { processed: 0, retried: 0 };
    return (await http.post("/bot/events/ack", { processedIds, retryIds })).data;
  }
}

async function emit(eventType, identity, payload = {}) {
  const { status, data } = await http.post("/bot/events", { eventType, payload, ...identity });
  assert.equal(status, 201, JSON.stringify(data));
  return data.id;
}

async function advance(seconds) {
  const { status } = await http.post("/dev/clock/advance", { seconds });
  assert.equal(status, 200);
}

async function pendingIds() {
  return (await http.get("/bot/events/pending")).data.events.map((event) => event.id);
}

test("a wrong bearer is answered 401, whatever is wrong with it", async () => {
  const bodies = new Set();
  const secret = ready.bot_secret;
  for (const wrong of [undefined, "", "Bearer", "Bearer wrong", `Bearer ${secret}x`, `Basic ${secret}`, secret]) {
    for (const [method, path] of [["get", "pending"], ["post", "ack"]]) {
      const headers = wrong === undefined ? {} : { Authorization: wrong };
      const url = `${ready.url}/bot/events/${path}`;
      const answer = await axios({ method, url, headers, validateStatus: () => true });
      assert.equal(answer.status, 401, `${wrong} ${path}`);
      bodies.add(JSON.stringify(answer.data));
    }
  }
  assert.equal(bodies.size, 1);
});

test("an event has the contract's fields, and Node's own fetch reads the same page", async () => {
  const id = await emit("new_partner", { magnetUid: 1, telegramId: "101" }, { partnerUid: 2, partnerName: "Аня" });
  const { data } = await http.get("/bot/events/pending");
  const { createdAt, ...event } = data.events[0];
  const payload = { partnerUid: 2, partnerName: "Аня" };
  assert.deepEqual(event, { id, eventType: "new_partner", telegramId: "101", magnetUid: 1, payload, attempts: 0 });
  assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000, createdAt);
  const headers = { authorization: `Bearer ${ready.bot_secret}` };
  const fetched = await fetch(`${ready.url}/bot/events/pending`, { headers });
  assert.deepEqual(await fetched.json(), data);
  assert.equal((await new OutboxConsumer().poll()).processed, 1);
});

test("each person's events come in the order they were emitted in", async () => {
  const emitted = new Map();
  for (let round = 0; round < 10; round += 1) {
    for (const identity of [{ magnetUid: 11 }, { magnetUid: 12, telegramId: "112" }, { telegramId: "113" }]) {
      const key = identity.magnetUid ?? identity.telegramId;
      emitted.set(key, [...(emitted.get(key) ?? []), await emit("reactivation", identity)]);
    }
  }
  const seen = new Map();
  const consumer = new OutboxConsumer((event) => {
    const key = event.magnetUid ?? event.telegramId;
    seen.set(key, [...(seen.get(key) ?? []), event.id]);
  });
  assert.equal((await consumer.poll()).processed, 30);
  assert.deepEqual(seen, emitted);
  assert.deepEqual(await pendingIds(), []);
});

test("a failed event comes again after its pause, and holds only its own person's later ones", async () => {
  const failing = await emit("wallet_connected", { magnetUid: 21 });
  const behind = await emit("registered", { magnetUid: 21 });
  const other = await emit("wallet_connected", { magnetUid: 22 });
  let failures = 1;
  const attempts = [];
  const consumer = new OutboxConsumer((event) => {
    if (event.id !== failing) return;
    attempts.push(event.attempts);
    if (failures-- > 0) throw new Error("Telegram is away");
  });
  const first = await consumer.poll();
  assert.deepEqual([first.processed, first.retried], [1, 1]);
  assert.deepEqual(consumer.handled, [other]);

  const another = await emit("wallet_connected", { magnetUid: 22 });
  assert.deepEqual(await pendingIds(), [another]);
  await consumer.poll();
  await advance(100);
  assert.deepEqual(await pendingIds(), []);
  await advance(20);
  assert.deepEqual(await pendingIds(), [failing, behind]);
  await consumer.poll();
  assert.deepEqual(consumer.handled, [other, another, failing, behind]);
  assert.deepEqual(attempts, [0, 1]);
});

test("after ten failures a registration is a dead letter, and anything else is abandoned", async () => {
  const registered = await emit("registered", { magnetUid: 31 });
  const connected = await emit("wallet_connected", { magnetUid: 32 });
  const behind = await emit("reactivation", { magnetUid: 31 });
  const consumer = new OutboxConsumer((event) => {
    if (event.id !== behind) throw new Error("never");
  });
  for (let failure = 1; failure < 10; failure += 1) {
    const { retried, deadLettered, abandoned } = await consumer.poll();
    assert.deepEqual([retried, deadLettered, abandoned], [2, 0, 0], `failure ${failure}`);
    assert.deepEqual(await pendingIds(), []);
    await advance(60 * 2 ** failure);
  }
  const { retried, deadLettered, abandoned } = await consumer.poll();
  assert.deepEqual([retried, deadLettered, abandoned], [0, 1, 1]);
  assert.deepEqual(await pendingIds(), [behind]);
  await consumer.poll();
  assert.deepEqual(consumer.handled, [behind]);
  await advance(365 * 24 * 3600);
  assert.deepEqual(await pendingIds(), []);
  const again = await http.post("/bot/events/ack", { processedIds: [registered, connected], retryIds: [] });
  assert.equal(again.data.deadLettered + again.data.abandoned, 2, "what was given up stays given up");
});

test("a chat id beyond what a JavaScript number holds stays exact", async () => {
  const telegramId = "9007199254740993";
  assert.notEqual(String(Number(telegramId)), telegramId);
  const id = await emit("reactivation", { telegramId });
  const { data } = await http.get("/bot/events/pending");
  assert.deepEqual(data.events.map((event) => [event.id, event.telegramId]), [[id, telegramId]]);
  await new OutboxConsumer().poll();

  const rounded = await http.post("/bot/events", { eventType: "reactivation", telegramId: Number(telegramId) });
  assert.ok([400, 422].includes(rounded.status), `a number was taken: ${rounded.status}`);
  assert.equal(rounded.headers["content-type"], "application/problem+json");
  assert.match(JSON.stringify(rounded.data), /telegramId/);
});

test("acknowledging and emitting can be repeated without harm", async () => {
  const event = { eventType: "reactivation", magnetUid: 41, dedupKey: "node:41" };
  const first = await http.post("/bot/events", event);
  const second = await http.post("/bot/events", event);
  assert.deepEqual([first.status, second.status, second.data], [201, 200, first.data]);
  const ack = { processedIds: [first.data.id], retryIds: [] };
  const { data } = await http.post("/bot/events/ack", ack);
  assert.deepEqual([data.processed, data.unknown], [1, 0]);
  assert.deepEqual((await http.post("/bot/events/ack", ack)).data, data);
  assert.equal((await http.post("/bot/events/ack", { processedIds: [], retryIds: [first.data.id] })).data.retried, 0);
  assert.equal((await http.post("/bot/events/ack", { processedIds: [2 ** 40], retryIds: [] })).data.unknown, 1);
  assert.deepEqual(await pendingIds(), []);
});
