// The example form (docs/examples/lead-form.html) in headless Chromium, from the page to the broker's chat.
//
// The page is served as a site would serve it. Between it and `pillarbox dev` stands a proxy that can lose an answer after
// the server stored the lead, which is what the request id is for.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, request as ask } from "node:http";
import { dirname, join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Browser } from "./chromium.mjs";
import { Pillarbox, eventually } from "./pillarbox.mjs";

const EXAMPLES = fileURLToPath(new URL("../../docs/examples/", import.meta.url));
/** What the form and the server are set to. */
const MIN_FILL_MS = 500;
/** Pictures for whoever wants to look. */
const PICTURES = dirname(process.env.CLIENTS_NODE);
const GROUP = -1001;
const REQUEST_ID = /^IP-\d{8}-[A-HJ-NP-Z2-9]{10}$/;

const servers = [];
let browser;
let pillarbox;
let site;
let stranger;
let proxy;
let page;
/** What reached the proxy, and what it does with the next answers: `pass`, `drop`, or `{status, body}` of its own. */
let posts = [];
/** What reached the site, which may have lost the script. */
let asked = [];
let isScriptLost = false;
let fates = [];
/** Every lead is another visitor's for the rate limit, which looks at the end of the phone. */
let visitors = 0;

async function listen(answer) {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  servers.push(server);
  return `http://127.0.0.1:${server.address().port}`;
}

/** The example as it is, but for the address and the pace of its attempts. */
function showExample(request, answer) {
  asked.push(`${request.method} ${request.url}`);
  const isScript = request.url.startsWith("/lead-form.js");
  const isPage = request.url.startsWith("/lead-form.html") && request.method === "GET";
  if (!(isScript && !isScriptLost) && !isPage) {
    answer.writeHead(404).end();
    return;
  }
  let text = readFileSync(join(EXAMPLES, isScript ? "lead-form.js" : "lead-form.html"), "utf8");
  if (!isScript) {
    text = text.replace(/data-endpoint="[^"]*"/, `data-endpoint="${proxy}/leads"`);
    text = text.replace(/data-retry-delays-ms="[^"]*"/, 'data-retry-delays-ms="30 60"');
    text = text.replace(/data-min-fill-ms="[^"]*"/, `data-min-fill-ms="${MIN_FILL_MS}"`);
  }
  answer.writeHead(200, { "content-type": `text/${isScript ? "javascript" : "html"}; charset=utf-8` }).end(text);
}

/** Hands a request on to pillarbox, and its answer back, or not. */
async function relay(request, answer) {
  const body = Buffer.concat(await request.toArray());
  const isPost = request.method === "POST";
  const fate = (isPost && fates.shift()) || "pass";
  if (isPost) posts.push(JSON.parse(body));
  if (fate.status) {
    const headers = { "content-type": "application/json", "access-control-allow-origin": request.headers.origin };
    answer.writeHead(fate.status, headers).end(JSON.stringify(fate.body));
    return;
  }
  const onward = ask(pillarbox.url + request.url, { method: request.method, headers: request.headers }, async (theirs) => {
    const text = Buffer.concat(await theirs.toArray());
    answer.writeHead(theirs.statusCode, theirs.headers);
    // Half of it: a browser itself repeats what was not answered at all on a connection that it used before.
    if (fate === "drop") answer.write(text.subarray(0, text.length / 2), () => request.socket.destroy());
    else answer.end(text);
  });
  onward.end(body);
}

before(async () => {
  proxy = await listen(relay);
  [site, stranger] = [await listen(showExample), await listen(showExample)];
  pillarbox = await Pillarbox.dev(`leads.allowed_origins=${site}`, `leads.min_fill_ms=${MIN_FILL_MS}`, "telegram.chat_interval=0");
  browser = await Browser.start();
});

after(async () => {
  await browser?.close();
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
  await pillarbox?.close();
});

beforeEach(async () => {
  [posts, fates, asked, isScriptLost] = [[], [], [], false];
  page = await browser.open(`${site}/lead-form.html?utm_source=test&utm_campaign=весна`);
});

afterEach(() => page.close());

/** Fills in what is required, at once, as a browser that remembers it does. */
async function fill(on = page, name = "Анна Ёлкина 🏠") {
  visitors += 1;
  await on.type("#name", name);
  await on.type("#phone", `8 (999) 000-${String(1000 + visitors).replace(/(..)(..)/, "$1-$2")}`);
  await on.type("#city", "Тверь");
  await on.choose("#scenario", "Отказали в ипотеке");
  if (!(await on.evaluate("document.querySelector('#consent').checked"))) await on.click("#consent");
}

/** Waits until the form says how it ended. */
async function ended(on = page) {
  const state = "document.querySelector('#lead-result').dataset.state";
  await on.until(`!["sending", "waiting", undefined].includes(${state})`);
  return on.evaluate(state);
}

const submit = (times) => page.click("button[type=submit]", times);
const shown = (on = page) => on.evaluate("document.querySelector('#lead-result').innerText");
const leads = (id) => pillarbox.sql(`SELECT * FROM broker_leads WHERE request_id = '${id}'`);
const told = async (id) => (await pillarbox.messages(GROUP)).filter(({ text }) => text.includes(id));
const toldOnce = (id) => eventually("the group to be told", async () => (await told(id)).length === 1);

test("a filled form becomes a lead, and the group is told of it", async () => {
  await page.screenshot(join(PICTURES, "lead-form-empty.png"));
  await fill();
  await page.type("#object_price", "6 500 000");
  await page.click("summary");
  await page.type("#down_payment", "маткапитал и 500 000");
  await page.click("input[value=finances]");
  await page.type("#remaining_questions", "Сколько ждать?\nЧто взять с собой?");
  await page.screenshot(join(PICTURES, "lead-form-filled.png"));
  await submit();
  assert.equal(await ended(), "stored");
  await page.screenshot(join(PICTURES, "lead-form-stored.png"));
  const { request_id } = posts[0];
  assert.match(request_id, REQUEST_ID);
  assert.ok((await shown()).includes(request_id), await shown());
  const [row] = await leads(request_id);
  assert.deepEqual(
    [row.client_name, row.phone_normalized, row.city, row.scenario, row.property_price, row.has_matkapital, row.utm_campaign],
    ["Анна Ёлкина 🏠", "79990001001", "Тверь", "Отказали в ипотеке", 6500000, 1, "весна"],
  );
  assert.deepEqual([row.journey_scenario_slug, row.preparation_completed], ["otkazali-v-ipoteke", '["Финансы"]']);
  assert.ok(row.form_fill_ms >= 500 && row.form_fill_ms < 60_000, row.form_fill_ms);
  assert.equal(JSON.parse(row.tracking).first_touch.utm_source, "test");
  await toldOnce(request_id);
  const [{ text }] = await told(request_id);
  assert.ok(text.includes("Имя: Анна Ёлкина 🏠") && text.includes("Что уже проверено: Финансы"), text);

  await page.click("#lead-next");
  await fill(page, "Борис");
  await submit();
  assert.equal(await ended(), "stored");
  assert.notEqual(posts[1].request_id, request_id, "the next form is another lead");
});

test("an answer that is lost after the lead was stored is made up for by the same request id", async () => {
  fates = ["drop"];
  await fill();
  await submit();
  assert.equal(await ended(), "duplicate");
  await page.screenshot(join(PICTURES, "lead-form-duplicate.png"));
  assert.equal(posts.length, 2);
  assert.deepEqual(posts[1], posts[0]);
  assert.equal((await leads(posts[0].request_id)).length, 1);
  await toldOnce(posts[0].request_id);
});

test("a reload keeps the request id of the same content, and other content gets its own", async () => {
  fates = ["drop", "drop", "drop"];
  await fill();
  await submit();
  assert.equal(await ended(), "failed");
  await page.screenshot(join(PICTURES, "lead-form-failed.png"));
  await page.call("Page.reload");
  await page.until("document.readyState === 'complete' && document.querySelector('#lead-result')?.hidden");
  visitors -= 1;
  await fill();
  await submit();
  assert.equal(await ended(), "duplicate");
  assert.equal(new Set(posts.map((post) => post.request_id)).size, 1);

  await page.click("#lead-next");
  fates = ["drop", "drop", "drop"];
  await fill();
  await submit();
  assert.equal(await ended(), "failed");
  const [unsure] = posts.slice(-1);
  await page.type("#city", "Псков");
  await page.click("#lead-again");
  assert.equal(await ended(), "stored", "the correction is not taken for a repeat");
  const [corrected] = posts.slice(-1);
  assert.notEqual(corrected.request_id, unsure.request_id);
  assert.equal((await leads(corrected.request_id))[0].city, "Псков");
});

test("a server that is away or overloaded for a moment costs the visitor nothing", async () => {
  const limited = { ok: false, success: false, error_code: "rate_limit_exceeded", request_id: null, retry_after_seconds: 1 };
  fates = [{ status: 503, body: { ok: false, error_code: "backend_unavailable" } }, { status: 429, body: limited }];
  await fill();
  await submit();
  await eventually("the second attempt", () => posts.length === 2);
  await page.until("document.querySelector('#lead-result').dataset.state === 'waiting'");
  assert.match(await shown(), /Повторим сами через 1 с/);
  await page.screenshot(join(PICTURES, "lead-form-waiting.png"));
  assert.equal(await ended(), "stored");
  assert.deepEqual([posts.length, new Set(posts.map((post) => post.request_id)).size], [3, 1]);
});

test("a long wait is told and left to the visitor", async () => {
  fates = [{ status: 429, body: { ok: false, error_code: "rate_limit_exceeded", retry_after_seconds: 1790 } }];
  await fill();
  await submit();
  assert.equal(await ended(), "limited");
  assert.match(await shown(), /через 30 мин/);
  assert.equal(await page.evaluate("document.querySelector('#name').value"), "Анна Ёлкина 🏠", "what was filled in stays");
  await submit();
  assert.equal(await ended(), "stored");
  assert.equal(posts[0].request_id, posts[1].request_id);
});

test("nothing is posted before everything required is there", async () => {
  await page.type("#phone", "123");
  await submit();
  const wrong = () => page.evaluate("[...document.querySelectorAll('[aria-invalid=true]')].map((field) => field.id)");
  assert.deepEqual(await wrong(), ["name", "phone", "city", "scenario", "consent"]);
  assert.equal(await page.evaluate("document.activeElement.id"), "name");
  assert.equal(await page.evaluate("document.querySelector('#phone-error').hidden"), false);
  await page.screenshot(join(PICTURES, "lead-form-incomplete.png"));
  await fill();
  assert.deepEqual(await wrong(), [], "a mark goes when its field is right");
  assert.equal(posts.length, 0);
});

test("two clicks are one post", async () => {
  await fill();
  await submit(2);
  assert.equal(await ended(), "stored");
  assert.equal(posts.length, 1);
});

test("who fills in the hidden field is refused, and nothing is stored", async () => {
  await fill();
  await page.type("#company_site", "https://spam.example");
  await submit();
  assert.equal(await ended(), "refused");
  assert.match(await shown(), /request_rejected/);
  await page.screenshot(join(PICTURES, "lead-form-refused.png"));
  assert.deepEqual(await leads(posts[0].request_id), []);
});

test("a page of another origin stores nothing, and its visitor is told", async () => {
  const foreign = await browser.open(`${stranger}/lead-form.html`);
  await fill(foreign);
  await foreign.click("button[type=submit]");
  assert.equal(await ended(foreign), "failed");
  assert.match(await shown(foreign), /Не получилось отправить/);
  await foreign.close();
  assert.deepEqual(posts, [], "the browser asks first, and is refused");
});

test("on a telephone, and with nothing that only a page with TLS has", async () => {
  const before = "crypto.randomUUID = crypto.subtle = undefined";
  const plain = await browser.open(`${site}/lead-form.html`, { before, width: 390, height: 1700 });
  await plain.screenshot(join(PICTURES, "lead-form-phone.png"));
  await fill(plain);
  await plain.click("button[type=submit]");
  assert.equal(await ended(plain), "stored");
  await plain.close();
  assert.match(posts[0].request_id, REQUEST_ID);
  assert.equal((await leads(posts[0].request_id)).length, 1);
});

test("what is filled in faster than the server believes waits for the rest of the time", async () => {
  const since = "JSON.parse(sessionStorage['lead-form:filled']).since";
  // As if the page had just been opened, and as if the clock had been set back since.
  for (const moment of ["Date.now()", "Date.now() + 3_600_000"]) {
    const quick = await browser.open(`${site}/lead-form.html`, {
      before: `sessionStorage["lead-form:filled"] ??= JSON.stringify({ since: ${moment} })`,
    });
    await fill(quick);
    assert.ok(await quick.evaluate(since), "it is remembered");
    await quick.click("button[type=submit]");
    assert.equal(await ended(quick), "stored");
    await quick.close();
  }
  assert.equal(posts.length, 2, "none was refused");
  assert.ok(posts.every(({ form_fill_ms }) => form_fill_ms >= MIN_FILL_MS), JSON.stringify(posts));
});

test("without its script the form sends nothing, puts nothing into the address, and says so", async () => {
  isScriptLost = true;
  const bare = await browser.open(`${site}/lead-form.html?bare`);
  const isSeen = "getComputedStyle(document.querySelector('#lead-broken')).visibility === 'visible'";
  assert.equal(await bare.evaluate(isSeen), false, "a script that is only late is not told of");
  assert.equal(await bare.evaluate("document.querySelector('#lead-fields').disabled"), true);
  await bare.until(isSeen);
  await bare.screenshot(join(PICTURES, "lead-form-broken.png"));
  await bare.click("button[type=submit]");
  // A page of somebody who opened the fields himself.
  await bare.evaluate("document.querySelector('#lead-fields').disabled = false");
  await bare.type("#name", "Анна");
  asked = [];
  await bare.evaluate("document.querySelector('#lead-form').submit()");
  await eventually("the form to be sent", () => asked.length > 0);
  assert.deepEqual(asked, ["POST /lead-form.html?bare"]);
  await bare.close();
  assert.deepEqual(posts, []);
});

test("a telephone number with a digit too few is told before it is sent", async () => {
  await fill();
  // So that none is sent.
  await page.click("#consent");
  const isWrong = () => page.evaluate("document.querySelector('#phone').getAttribute('aria-invalid') === 'true'");
  for (const [number, isRefused] of [
    ["8 (900) 123-45-6", true], ["7900123456", true], ["+7 900 123-45-6", true], ["89001234567 1", true], ["", true],
    ["+375 29 123-45-67", true], ["+7 (900) 123-45-67", false], ["8 812 123 45 67", false], ["900 123-45-67", false],
  ]) {
    await page.type("#phone", number);
    await submit();
    assert.equal(await isWrong(), isRefused, number);
  }
  assert.deepEqual(posts, []);
});

test("every control has a name that a screen reader says", async () => {
  const nameless = "[...document.querySelectorAll('input, select, textarea')].filter((field) => !field.labels.length).length";
  assert.equal(await page.evaluate(nameless), 0);
  const { nodes } = await page.call("Accessibility.getFullAXTree");
  const names = nodes.filter((node) => !node.ignored).map((node) => node.name?.value ?? "");
  assert.ok(names.some((name) => name.startsWith("Имя")), "what is seen is in the tree");
  assert.ok(!names.includes("Оставьте пустым"), "the hidden field is not");
  assert.ok(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off");
});
