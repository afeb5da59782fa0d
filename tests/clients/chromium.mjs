// Headless Chromium for the scripts beside this file, driven over its DevTools protocol as a person would drive it: text
// is typed into what has the focus, buttons are clicked where they are.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { eventually, pinned } from "./pillarbox.mjs";

const WebSocket = pinned("ws");

/** The processes of Chromium in the process group of this script, which the browser and its helpers are in. */
function helpers() {
  const stats = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map((name) => {
    try {
      return readFileSync(`/proc/${name}/stat`, "utf8");
    } catch {
      return "";
    }
  });
  // pid (name) state ppid pgrp …; a name may have spaces and brackets in it.
  const groupOf = (stat) => stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2];
  const [own] = stats.filter((stat) => stat.startsWith(`${process.pid} `)).map(groupOf);
  return stats.filter((stat) => /^\d+ \(chrom/.test(stat) && groupOf(stat) === own);
}

/** One browser with a profile of its own. */
export class Browser {
  #calls = new Map();
  #last = 0;

  static async start() {
    const self = new Browser();
    self.profile = mkdtempSync(join(tmpdir(), "chromium-"));
    const line = ["--headless=new", "--remote-debugging-port=0", `--user-data-dir=${self.profile}`, "--disable-gpu"];
    // The sandbox needs what a container rarely allows; only our own page is opened, and the network is this machine.
    line.push("--no-sandbox", "--no-first-run", "--disable-dev-shm-usage", "--disable-background-networking");
    line.push("--disable-component-update", "--no-proxy-server", "--lang=ru", "about:blank");
    const env = { PATH: process.env.PATH, HOME: self.profile, LANG: "C.UTF-8" };
    self.process = spawn("chromium", line, { env, stdio: "ignore" });
    const told = join(self.profile, "DevToolsActivePort");
    await eventually("chromium to be ready", () => {
      assert.equal(self.process.exitCode, null, "chromium ended at once");
      return existsSync(told) && readFileSync(told, "utf8").includes("\n");
    });
    const [port, path] = readFileSync(told, "utf8").split("\n");
    self.socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { perMessageDeflate: false });
    self.socket.on("message", (text) => self.#hear(JSON.parse(text)));
    await once(self.socket, "open");
    return self;
  }

  #hear({ id, result, error }) {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (error) call?.reject(new Error(error.message));
    else call?.resolve(result);
  }

  call(method, params = {}, sessionId = undefined) {
    const id = ++this.#last;
    this.socket.send(JSON.stringify({ id, method, params, sessionId }));
    return new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }));
  }

  /** A new tab at `url`; `before` is a script that runs there before the page's own. */
  async open(url, { before = "", width = 900, height = 1500 } = {}) {
    const { targetId } = await this.call("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.call("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId, targetId);
    await page.call("Page.enable");
    await page.call("Page.addScriptToEvaluateOnNewDocument", { source: before });
    await page.call("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 600 });
    await page.go(url);
    return page;
  }

  async close() {
    if (this.process.exitCode === null) {
      this.call("Browser.close").catch(() => {});
      await once(this.process, "exit");
    }
    // Its helpers follow it a moment later.
    await eventually("chromium's helpers to end", () => !helpers().length);
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** One tab. */
class Page {
  constructor(browser, session, target) {
    Object.assign(this, { browser, session, target });
  }

  call(method, params) {
    return this.browser.call(method, params, this.session);
  }

  async go(url) {
    await this.call("Page.navigate", { url });
    await eventually(`${url} to be loaded`, () => this.evaluate("location.href !== 'about:blank' && document.readyState === 'complete'"));
  }

  /** What an expression is worth in the page. */
  async evaluate(expression) {
    const params = { expression, returnByValue: true, awaitPromise: true };
    const { result, exceptionDetails } = await this.call("Runtime.evaluate", params);
    assert.equal(exceptionDetails, undefined, exceptionDetails?.exception?.description);
    return result.value;
  }

  /** Waits until an expression is true. */
  until(expression) {
    return eventually(expression, () => this.evaluate(expression));
  }

  /** Puts this text in the place of what a field has. */
  async type(selector, text) {
    await this.evaluate(`document.querySelector(${JSON.stringify(selector)}).focus()`);
    await this.evaluate("document.activeElement.select()");
    await this.call("Input.insertText", { text });
  }

  /** Chooses the option of a list by its text. */
  async choose(selector, text) {
    await this.evaluate(`{
      const list = document.querySelector(${JSON.stringify(selector)});
      list.value = [...list.options].find((option) => option.text === ${JSON.stringify(text)}).value;
      list.dispatchEvent(new Event("input", { bubbles: true }));
      list.dispatchEvent(new Event("change", { bubbles: true }));
    }`);
  }

  async click(selector, times = 1) {
    const [x, y] = await this.evaluate(`(() => {
      const seen = document.querySelector(${JSON.stringify(selector)});
      seen.scrollIntoView({ block: "center", behavior: "instant" });
      const box = seen.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2];
    })()`);
    for (let clickCount = 1; clickCount <= times; clickCount += 1) {
      for (const type of ["mousePressed", "mouseReleased"]) {
        await this.call("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount });
      }
    }
  }

  async screenshot(path) {
    const { data } = await this.call("Page.captureScreenshot", { format: "png" });
    writeFileSync(path, Buffer.from(data, "base64"));
  }

  close() {
    return this.browser.call("Target.closeTarget", { targetId: this.target });
  }
}
