// A running `pillarbox dev` for the Node scripts beside this file, and how each of them comes by the npm packages.
//
// Every process gets a directory and an environment of its own, so that no configuration of this machine reaches it, and
// is stopped as an operator would: with SIGTERM, which has to end in exit code 0.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

export const PATIENCE_MS = 15_000;

/** What the pinned package of this name exports. */
export const pinned = createRequire(join(process.env.CLIENTS_NODE, "package.json"));

const ENV = { HOME: process.env.HOME, PATH: process.env.PATH };

/** One `pillarbox dev`; `ready` is what it told when it was, and `url` where it is. */
export class Pillarbox {
  static async dev(...settings) {
    const self = new Pillarbox();
    self.folder = mkdtempSync(join(tmpdir(), "dev-"));
    const file = join(self.folder, "ready.json");
    self.data = join(self.folder, "data");
    const line = ["dev", "--no-demo", "--ready-file", file, "--data-dir", self.data, "--listen", "127.0.0.1:0"];
    const sets = ["log.level=warn", ...settings].flatMap((setting) => ["--set", setting]);
    const options = { cwd: self.folder, env: ENV, stdio: ["ignore", "ignore", "inherit"] };
    self.process = spawn(process.env.CLIENTS_BINARY, [...line, ...sets], options);
    await eventually("pillarbox to be ready", () => {
      assert.equal(self.process.exitCode, null, "pillarbox ended at once");
      return existsSync(file);
    });
    self.ready = JSON.parse(readFileSync(file, "utf8"));
    self.url = self.ready.url;
    return self;
  }

  /** The rows of a SELECT, read by the CLI beside the server. */
  async sql(text) {
    const line = ["sql", "--json", "--data-dir", this.data, text];
    const { stdout } = await promisify(execFile)(process.env.CLIENTS_BINARY, line, { cwd: this.folder, env: ENV });
    return stdout.split("\n").filter(Boolean).map((row) => JSON.parse(row));
  }

  /** A command of `/dev`. */
  async command(path, body) {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(this.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    assert.equal(answer.status, 200, await answer.clone().text());
    return answer.json();
  }

  /** What the fake Telegram accepted for a chat. */
  async messages(chatId) {
    const answer = await fetch(`${this.url}/dev/telegram/messages?chat_id=${chatId}`);
    return (await answer.json()).messages;
  }

  async close() {
    if (this.process.exitCode === null) {
      this.process.kill("SIGTERM");
      await once(this.process, "exit");
    }
    rmSync(this.folder, { recursive: true, force: true });
    assert.equal(this.process.exitCode, 0, "pillarbox did not end well");
  }
}

/** Asks again until `look` answers something true, and returns that. */
export async function eventually(what, look) {
  for (const begun = Date.now(); ; await sleep(20)) {
    const found = await look();
    if (found) return found;
    assert.ok(Date.now() - begun < PATIENCE_MS, `waited ${PATIENCE_MS} ms in vain for ${what}`);
  }
}
