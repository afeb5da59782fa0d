// The official verifier for JavaScript (`standardwebhooks`) against deliveries of a running `dev`.
//
// The receiver is Node's own HTTP server and hands the verifier the bytes that came. Each body is also written anew by
// JavaScript's own JSON, as a careless receiver would: then the verifier must refuse it, or the test would prove nothing.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { Pillarbox, eventually, pinned } from "./pillarbox.mjs";

const { Webhook, WebhookVerificationError } = pinned("standardwebhooks");

const FIXTURE = new URL("../../fixtures/webhooks/tempting.ndjson", import.meta.url);
// Lines end in LF only: one of them has other separators in it.
const TEMPTING = readFileSync(FIXTURE, "utf8").trimEnd().split("\n");

const came = [];
/** What is answered to a path until there is no more; then 200. */
const statuses = {};
let receiver;
let pillarbox;
let made = 0;

before(async () => {
  receiver = createServer(async (request, answer) => {
    const body = Buffer.concat(await request.toArray());
    came.push({ path: request.url, headers: request.headers, body });
    answer.writeHead(statuses[request.url]?.shift() ?? 200).end();
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  pillarbox = await Pillarbox.dev();
});

after(async () => {
  await pillarbox.close();
  receiver.close();
});

async function call(method, path, body, expected = 200) {
  const headers = { authorization: `Bearer ${pillarbox.ready.api_key}`, "content-type": "application/json" };
  const text = typeof body === "string" ? body : body && JSON.stringify(body);
  const answer = await fetch(pillarbox.url + path, { method, headers, body: text });
  const said = await answer.text();
  assert.equal(answer.status, expected, said);
  return JSON.parse(said);
}

/** An endpoint of its own, and how to post what only it wants. */
async function subscribe(more = {}) {
  made += 1;
  const [path, type] = [`/hook-${made}`, `for.hook_${made}`];
  const url = `http://127.0.0.1:${receiver.address().port}${path}`;
  const { id, secret } = await call("POST", "/v1/endpoints", { url, event_types: [type], ...more }, 201);
  const post = async (data = "{}") => {
    const event = `{"type": "${type}", "version": 1, "aggregate": {"type": "order", "id": "7"}, "data": ${data}}`;
    return (await call("POST", "/v1/events", event, 202)).event_id;
  };
  const requests = (count) =>
    eventually(`${count} requests to ${path}`, () => {
      const found = came.filter((one) => one.path === path);
      return found.length >= count && found;
    });
  return { endpoint: `/v1/endpoints/${id}`, path, type, secret, post, requests };
}

function fits(secret, { headers, body }) {
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch (error) {
    assert.ok(error instanceof WebhookVerificationError, error);
    return false;
  }
}

test("every tempting body verifies as its bytes and not as what JSON makes of them", async () => {
  const { post, requests, secret } = await subscribe();
  const sent = new Map();
  for (const data of TEMPTING) sent.set(await post(data), data);
  let refused = 0;
  for (const { headers, body } of await requests(TEMPTING.length)) {
    const data = sent.get(headers["webhook-id"]);
    sent.delete(headers["webhook-id"]);
    assert.ok(body.toString().endsWith(`,"data":${data}}`), `${body} for ${data}`);
    new Webhook(secret).verify(body, headers);
    const again = Buffer.from(JSON.stringify(JSON.parse(body.toString())));
    assert.equal(fits(secret, { headers, body: again }), again.equals(body), `${body}`);
    refused += again.equals(body) ? 0 : 1;
  }
  assert.equal(sent.size, 0);
  assert.ok(refused > TEMPTING.length / 2, `only ${refused} bodies were changed by JSON`);
});

test("an attempt that repeats has the same id and bytes and a signature of its own", async () => {
  const { path, type, post, requests, secret } = await subscribe();
  statuses[path] = [500];
  const event = await post(TEMPTING[1]);
  await eventually("the attempt to have failed", async () => {
    const { items } = await call("GET", `/v1/deliveries?event_type=${type}&status=pending`);
    return items.some((one) => one.attempts === 1);
  });
  await call("POST", "/dev/clock/advance", { seconds: 6 });
  const [first, second] = await requests(2);
  for (const one of [first, second]) {
    assert.equal(one.headers["webhook-id"], event);
    new Webhook(secret).verify(one.body, one.headers);
  }
  assert.ok(first.body.equals(second.body));
  assert.notEqual(first.headers["webhook-signature"], second.headers["webhook-signature"]);
  const stamp = { "webhook-timestamp": second.headers["webhook-timestamp"] };
  assert.ok(!fits(secret, { headers: { ...first.headers, ...stamp }, body: first.body }), "the timestamp is signed");
});

test("during a rotation each secret verifies alone, and afterwards only the new one", async () => {
  const { endpoint, post, requests, secret: old } = await subscribe();
  await post();
  const [first] = await requests(1);
  const { secret: renewed } = await call("POST", `${endpoint}/rotate-secret`, {});
  await post(TEMPTING[2]);
  const [, second] = await requests(2);
  assert.deepEqual([old, renewed].map((secret) => fits(secret, first)), [true, false]);
  assert.deepEqual([old, renewed].map((secret) => fits(secret, second)), [true, true]);
  const { secret: newest } = await call("POST", `${endpoint}/rotate-secret`, { overlap_seconds: 0 });
  await post(TEMPTING[3]);
  const [, , third] = await requests(3);
  assert.deepEqual([renewed, newest].map((secret) => fits(secret, third)), [false, true]);
});

test("what the test button sends verifies too", async () => {
  const { endpoint, requests, secret } = await subscribe();
  const tried = await call("POST", `${endpoint}/test`, {});
  assert.ok(tried.delivered, JSON.stringify(tried));
  const [{ headers, body }] = await requests(1);
  assert.equal(new Webhook(secret).verify(body, headers).type, "webhook.test");
});
