// The receiver in JavaScript of docs/webhooks.md, as it stands there, takes real deliveries with the official library
// (npm: standardwebhooks): data that tempts a re-serialiser, and a secret that is replaced meanwhile.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Pillarbox, eventually, pinned } from "./pillarbox.mjs";

const { Webhook } = pinned("standardwebhooks");
const PAGE = readFileSync(new URL("../../docs/webhooks.md", import.meta.url), "utf8");

// Each is kept, signed and sent as it stands: other bytes with the same meaning would not verify.
const DATA = [
  '{"b":1,"a":2,"b":3}',
  '{"n":1e400,"m":-1E-400,"x":0.10,"y":1.0,"z":100000000000000000000000001}',
  '{"emoji":"\u{1f642}","escaped":"\\ud83d\\ude42","lone":"\\ud83d"}',
  '{"separators":"\u2028\u2029","escaped":"\\u2028"}',
  '{"slashes":"\\/ \\\\ /","html":"<script>&amp;\'"}',
  '{ "white" :\t[ 1 ,\n 2 ] }',
  `{"nested":${"[".repeat(90)}${"]".repeat(90)}}`,
  "{}",
];

let server;
const running = [];

before(async () => {
  server = await Pillarbox.dev();
});

after(async () => {
  running.forEach((program) => program.kill("SIGKILL"));
  await server.close();
});

/** The page's program, where it finds the packages. */
function receiver() {
  const blocks = PAGE.split("```js\n").slice(1).map((block) => block.split("\n```")[0]);
  const [block, ...others] = blocks.filter((block) => block.includes("standardwebhooks"));
  assert.equal(others.length, 0);
  const path = join(process.env.CLIENTS_NODE, "receiver.mjs");
  writeFileSync(path, block);
  return path;
}

async function call(method, path, body) {
  const headers = { authorization: `Bearer ${server.ready.api_key}`, "content-type": "application/json" };
  const text = typeof body === "object" ? JSON.stringify(body) : body;
  const answer = await fetch(server.url + path, { method, headers, body: text });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer.json();
}

const endpoint = (url) => call("POST", "/v1/endpoints", { url, event_types: ["order.*"] });

/** Posts an event with these data, byte for byte; its id. */
async function post(data) {
  const body = `{"type":"order.paid","version":1,"aggregate":{"type":"order","id":"17"},"data":${data}}`;
  return (await call("POST", "/v1/events", body)).event_id;
}

function freePort() {
  return new Promise((found) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => found(port));
    });
  });
}

const listens = (port) =>
  new Promise((say) => {
    const socket = connect(port, "127.0.0.1", () => socket.end(() => say(true)));
    socket.on("error", () => say(false));
  });

test("the receiver of the page verifies whatever is in the data", async () => {
  const port = await freePort();
  const { id, secret } = await endpoint(`http://127.0.0.1:${port}/hooks`);
  const env = { PATH: process.env.PATH, WEBHOOK_SECRET: secret, PORT: String(port) };
  const program = spawn(process.execPath, [receiver()], { env, stdio: ["ignore", "pipe", "inherit"] });
  running.push(program);
  let said = "";
  program.stdout.on("data", (part) => (said += part));
  await eventually("the receiver to listen", () => listens(port));
  const ids = [];
  for (const data of DATA) ids.push(await post(data));
  await eventually("every event", () => ids.every((id) => said.includes(`order.paid ${id}\n`)));
  const { items } = await eventually("all delivered", async () => {
    const page = await call("GET", `/v1/deliveries?endpoint_id=${id}`);
    return page.items.every((item) => item.status === "delivered") && page;
  });
  assert.deepEqual(new Set(items.map((item) => item.attempts)), new Set([1]));
  // What is not from here is refused.
  const forged = await fetch(`http://127.0.0.1:${port}/hooks`, { method: "POST", body: "{}" });
  assert.equal(forged.status, 400);
  program.kill();
});

function takes(secret, request) {
  try {
    new Webhook(secret).verify(request.body, request.headers);
    return true;
  } catch {
    return false;
  }
}

test("while a secret is replaced both verify", async () => {
  const { id, secret: old } = await endpoint(`${server.url}/dev/sink/rotated`);
  const { secret } = await call("POST", `/v1/endpoints/${id}/rotate-secret`, { overlap_seconds: 3600 });
  await post("{}");
  const [request] = await eventually("a delivery", async () => {
    const { requests } = await (await fetch(`${server.url}/dev/sink/rotated/requests`)).json();
    return requests.length > 0 && requests;
  });
  assert.deepEqual([takes(old, request), takes(secret, request)], [true, true]);
  assert.equal(takes(secret, { ...request, body: `${request.body} ` }), false);
});
