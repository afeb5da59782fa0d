// The stock client of Supabase (npm: @supabase/supabase-js) calls the functions of the leads' contract, as the Edge
// Function that the contract was written for does: unchanged, with nothing configured but the address and the key.
//
// `pillarbox dev` runs with `leads.delivery=rpc`, so that nobody but this script claims.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";

import { Pillarbox, pinned } from "./pillarbox.mjs";

const { createClient } = pinned("@supabase/supabase-js");

let server;
let service;

/** Node 20 has no WebSocket of its own, which the realtime part wants at once, although nothing here uses it. */
function client(key) {
  return createClient(server.url, key, { realtime: { transport: pinned("ws") }, auth: { persistSession: false } });
}

before(async () => {
  server = await Pillarbox.dev("leads.delivery=rpc");
  service = client(server.ready.service_role_key);
});

after(() => server.close());

/** A lead that came from the site; its ids, as the functions want them. */
async function lead(name = "Анна") {
  const request = `IP-20270115-${randomUUID().replaceAll("-", "").slice(0, 12).toUpperCase()}`;
  const posted = await fetch(`${server.url}/leads`, {
    method: "POST",
    // Every lead comes from another visitor, so that the rate limit does not count them together.
    headers: { "content-type": "application/json", origin: server.ready.lead_origin, "user-agent": request },
    body: JSON.stringify({
      schema_version: 1,
      request_id: request,
      form_version: "test-1",
      form_fill_ms: 5000,
      client: { name, phone: "+7 999 000-00-01", city: "Тверь" },
      mortgage: { scenario: "Отказали в ипотеке" },
      personal_data_consent: "yes",
      consent: true,
      spam_check: { honeypot_empty: true, likely_bot: false },
    }),
  });
  assert.equal(posted.status, 201, await posted.clone().text());
  const [row] = await server.sql(`SELECT id FROM broker_leads WHERE request_id = '${request}'`);
  return { p_lead_id: row.id, p_request_id: request };
}

async function called(name, args) {
  const { data, error, status } = await service.rpc(name, args);
  assert.deepEqual([error, status], [null, 200], JSON.stringify(error));
  return data;
}

const summary = (args) => service.rpc("broker_lead_notification_summary", args);
const claim = (args) => called("claim_broker_lead_notification", args);
const complete = (args) => called("complete_broker_lead_notification", args);
const retry = (args) => called("request_broker_lead_notification_retry", args);

test("claim, summary and complete as the contract's handler calls them", async () => {
  const id = await lead("Анна Ё 🏠");
  assert.deepEqual(await claim(id), [{ claimed: true, current_status: "sending", attempt_count: 1 }]);
  assert.deepEqual(await claim(id), [{ claimed: false, current_status: "sending", attempt_count: 1 }]);
  const { data: text, error } = await summary({ p_lead_id: id.p_lead_id });
  assert.equal(error, null);
  assert.equal(text.split("\n")[0], "Новая заявка ипотечному брокеру");
  assert.ok(text.includes(id.p_request_id) && text.includes("Анна Ё 🏠"), text);
  assert.equal(await complete({ ...id, p_success: true, p_error: null }), "sent");
  assert.equal(await complete({ ...id, p_success: true, p_error: null }), "unchanged");
  assert.deepEqual(await claim(id), [{ claimed: false, current_status: "sent", attempt_count: 1 }]);
});

test("single() and maybeSingle() give the one row as an object", async () => {
  const id = await lead();
  const single = await service.rpc("claim_broker_lead_notification", id).single();
  assert.deepEqual([single.error, single.data.claimed, single.data.attempt_count], [null, true, 1]);
  const maybe = await service.rpc("claim_broker_lead_notification", id).maybeSingle();
  assert.deepEqual([maybe.error, maybe.data.claimed], [null, false]);
  const one = await service.rpc("claim_broker_lead_notification", id).limit(1).single().throwOnError();
  assert.equal(one.data.current_status, "sending");
});

test("a failed notification is sent again only after a retry, and the fence holds", async () => {
  const id = await lead();
  await claim(id);
  // What is undefined is left out of the body.
  assert.equal(await complete({ ...id, p_success: false, p_error: "telegram_http_502", p_attempt_count: undefined }), "failed");
  assert.deepEqual(await claim(id), [{ claimed: false, current_status: "failed", attempt_count: 1 }]);
  const asked = { ...id, p_reason_code: "telegram_temporary_error" };
  assert.deepEqual(await retry(asked), [{ retry_requested: true, current_status: "pending", retry_count: 1 }]);
  assert.deepEqual(await retry(asked), [{ retry_requested: false, current_status: "pending", retry_count: 1 }]);
  assert.equal((await claim(id))[0].attempt_count, 2);
  assert.equal(await complete({ ...id, p_success: true, p_error: null, p_attempt_count: 1 }), "unchanged");
  assert.equal(await complete({ ...id, p_success: true, p_error: null, p_attempt_count: 2 }), "sent");
});

test("64 claims at once have one winner", async () => {
  const id = await lead();
  const rows = await Promise.all(Array.from({ length: 64 }, () => claim(id)));
  assert.equal(rows.filter(([row]) => row.claimed).length, 1);
});

test("unknown ids, reasons, functions and arguments are errors of PostgREST's shape", async () => {
  const p_lead_id = randomUUID();
  const missing = await summary({ p_lead_id });
  assert.deepEqual(
    [missing.status, missing.data, { ...missing.error }],
    [400, null, { code: "P0001", message: "broker_lead_not_found", details: null, hint: null }],
  );
  assert.deepEqual(await claim({ p_lead_id, p_request_id: null }), [
    { claimed: false, current_status: "missing", attempt_count: 0 },
  ]);
  assert.equal(await complete({ p_lead_id, p_request_id: "x", p_success: true }), "unchanged");
  const cases = [
    ["request_broker_lead_notification_retry", { p_lead_id, p_request_id: null, p_reason_code: "because" }, 400, "P0001"],
    ["broker_lead_notification_summary", { p_lead_id: "not-a-uuid" }, 400, "22P02"],
    ["broker_lead_notification_summary", {}, 404, "PGRST202"],
    ["claim_broker_lead_notification", { lead: p_lead_id }, 404, "PGRST202"],
    ["no_such_function", { p_lead_id }, 404, "PGRST202"],
  ];
  for (const [name, args, status, code] of cases) {
    const answer = await service.rpc(name, args);
    assert.deepEqual([answer.status, answer.data, answer.error.code], [status, null, code], name);
    assert.deepEqual(Object.keys(answer.error).filter((key) => key !== "name").sort(), ["code", "details", "hint", "message"]);
  }
  await assert.rejects(async () => summary({ p_lead_id }).throwOnError(), { code: "P0001", message: "broker_lead_not_found" });
});

test("reading by GET and HEAD works for the summary only", async () => {
  const id = await lead();
  const { data, error } = await service.rpc("broker_lead_notification_summary", { p_lead_id: id.p_lead_id }, { get: true });
  assert.equal(error, null);
  assert.ok(data.includes(id.p_request_id));
  const head = await service.rpc("broker_lead_notification_summary", { p_lead_id: id.p_lead_id }, { head: true });
  assert.deepEqual([head.status, head.data, head.error], [200, null, null]);
  const refused = await service.rpc("claim_broker_lead_notification", id, { get: true });
  assert.deepEqual([refused.status, refused.error.code], [405, "25006"]);
  assert.equal((await claim(id))[0].attempt_count, 1, "the GET changed nothing");
});

test("another schema, another form and a filter are refused, not ignored", async () => {
  const id = await lead();
  const other = await service.schema("private").rpc("claim_broker_lead_notification", id);
  assert.deepEqual([other.status, other.error.code], [406, "PGRST106"]);
  const csv = await service.rpc("claim_broker_lead_notification", id).csv();
  assert.deepEqual([csv.status, csv.error.code], [406, "PGRST107"]);
  const filtered = await service.rpc("claim_broker_lead_notification", id).eq("claimed", true);
  assert.deepEqual([filtered.status, filtered.error.code], [400, "PGRST127"]);
  const table = await service.from("broker_leads").select("*");
  assert.deepEqual([table.status, table.error.code], [404, "PGRST125"]);
  assert.equal((await claim(id))[0].attempt_count, 1, "none of them claimed");
});

test("only the service key may call, and no other key learns whether a lead exists", async () => {
  const id = await lead();
  for (const [key, status, code] of [
    [server.ready.anon_key, 403, "42501"],
    ["a-wrong-key", 401, "PGRST301"],
    [`${server.ready.service_role_key}x`, 401, "PGRST301"],
    [server.ready.bot_secret, 401, "PGRST301"],
  ]) {
    const stranger = client(key);
    const seen = new Set();
    for (const p_lead_id of [id.p_lead_id, randomUUID(), "not-a-uuid"]) {
      const answer = await stranger.rpc("broker_lead_notification_summary", { p_lead_id });
      assert.deepEqual([answer.status, answer.data, answer.error.code], [status, null, code]);
      seen.add(JSON.stringify(answer.error));
    }
    assert.equal(seen.size, 1);
    const claimed = await stranger.rpc("claim_broker_lead_notification", id);
    assert.equal(claimed.status, status);
  }
  assert.equal((await claim(id))[0].attempt_count, 1, "none of them claimed");
});
