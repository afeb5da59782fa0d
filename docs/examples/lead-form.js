// Posts the form of lead-form.html to Pillarbox, so that what a person filled in once is stored once.
//
// A filled form has one request id. Every attempt to deliver it has the same one, over time-outs, lost answers and a
// reload of the page, and the server knows it again: `duplicate` is a success. Other content gets another id, since
// under the old one it would be answered as known and be lost.

(() => {
  "use strict";

  const form = document.getElementById("lead-form");
  const fields = document.getElementById("lead-fields");
  const result = document.getElementById("lead-result");
  const retryDelaysMs = form.dataset.retryDelaysMs.split(" ").map(Number);
  /** A wait that a person sits out in front of the page; longer ones are told and left to them. */
  const LONGEST_WAIT_S = 20;
  const FILLED = "lead-form:filled";
  const TOUCHES = "lead-form:touches";
  const UTM = ["utm_source", "utm_medium", "utm_campaign", "utm_content", "utm_term"];

  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  // --- what is remembered

  /** A storage may be switched off or full; the form works without. */
  function recall(storage, key) {
    try {
      return JSON.parse(window[storage].getItem(key)) ?? {};
    } catch {
      return {};
    }
  }

  function remember(storage, key, value) {
    try {
      window[storage].setItem(key, JSON.stringify(value));
    } catch {
      // Then it lives as long as the page.
    }
  }

  /** The filled form of this tab: since when, its request id, of what content, whether it may have been stored. */
  let filled = { since: Date.now(), ...recall("sessionStorage", FILLED) };
  remember("sessionStorage", FILLED, filled);

  function keep(changes) {
    filled = { ...filled, ...changes };
    remember("sessionStorage", FILLED, filled);
  }

  /** The form of id that a person can read out on the telephone: without 0, O, 1 and I. 50 random bits. */
  function newRequestId() {
    const signs = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    const random = Array.from(crypto.getRandomValues(new Uint8Array(10)), (byte) => signs[byte % signs.length]);
    const date = new Date().toISOString().slice(0, 10).replaceAll("-", "");
    return `IP-${date}-${random.join("")}`;
  }

  /** The id under which this content is posted. */
  function requestIdOf(content) {
    const of = digest(content);
    if (!filled.request_id || (filled.of !== of && filled.may_be_stored)) {
      keep({ request_id: newRequestId(), may_be_stored: false });
    }
    keep({ of });
    return filled.request_id;
  }

  /** FNV-1a, 32 bits: enough to see a change, too little to tell what was written. */
  function digest(text) {
    let hash = 0x811c9dc5;
    for (const sign of text) hash = Math.imul(hash ^ sign.codePointAt(0), 0x01000193) >>> 0;
    return hash;
  }

  /** How long the form has been in front of the person. A clock that was set back meanwhile counts from its now. */
  function fillMs() {
    const now = Date.now();
    if (!(filled.since <= now)) keep({ since: now });
    return now - filled.since;
  }

  // --- where the visitor came from

  function touch() {
    const query = new URLSearchParams(location.search);
    const utm = Object.fromEntries(UTM.filter((name) => query.has(name)).map((name) => [name, query.get(name)]));
    return { ...utm, page_url: location.href, referrer: document.referrer, at: new Date().toISOString() };
  }

  /** The first visit, the last one that a link with marks led to, and this one. */
  function tracking() {
    const current = touch();
    const { first_touch: first = current, last_touch: last = first } = recall("localStorage", TOUCHES);
    const isMarked = UTM.some((name) => name in current);
    const touches = { first_touch: first, last_touch: isMarked ? current : last };
    remember("localStorage", TOUCHES, touches);
    return { ...touches, current };
  }

  const tracked = tracking();

  // --- what is posted

  function normalizedPhone(text) {
    const digits = text.replace(/\D/g, "");
    if (digits.length === 10) return `7${digits}`;
    return digits.length === 11 && digits.startsWith("8") ? `7${digits.slice(1)}` : digits;
  }

  function lead() {
    const data = new FormData(form);
    const text = (name) => (data.get(name) ?? "").trim();
    const isEmpty = text("company_site") === "";
    const checks = data.getAll("completed_checks");
    const labels = [...form.elements.completed_checks].filter((box) => box.checked);
    return {
      schema_version: 1,
      form_version: form.dataset.formVersion,
      submitted_at: new Date().toISOString(),
      source_page: document.title,
      page_url: location.href,
      page_title: document.title,
      referrer: document.referrer,
      client: {
        name: text("name"),
        phone: text("phone"),
        phone_normalized: normalizedPhone(text("phone")),
        city: text("city"),
        preferred_contact: text("preferred_contact"),
      },
      mortgage: {
        scenario: text("scenario"),
        object_type: text("object_type"),
        object_price: text("object_price"),
        down_payment: text("down_payment"),
        income_type: text("income_type"),
        bank_history: text("bank_history"),
        comment: text("comment"),
      },
      preparation: {
        scenario_slug: form.elements.scenario.selectedOptions[0]?.dataset.slug ?? "",
        completed_checks: checks,
        completed_labels: labels.map((box) => box.parentElement.textContent.trim()),
        remaining_questions: text("remaining_questions"),
      },
      tracking: tracked,
      personal_data_consent: data.has("consent") ? "yes" : "no",
      consent: data.has("consent"),
      spam_check: { honeypot_empty: isEmpty, likely_bot: !isEmpty },
    };
  }

  /** The server refuses what was filled in faster than a person can, and a browser fills in everything at once: then the
   *  rest of that time passes first. */
  async function takeTime(body) {
    const leastMs = Number(form.dataset.minFillMs);
    while (fillMs() < leastMs) await sleep(leastMs - fillMs());
    body.form_fill_ms = fillMs();
    body.spam_check.form_fill_ms = body.form_fill_ms;
  }

  /** The person's own words: what makes a form the same form, whenever it is sent. */
  function contentOf({ client, mortgage, preparation }) {
    return JSON.stringify([client, mortgage, preparation]);
  }

  // --- what is shown

  function show(state, values = {}) {
    result.hidden = false;
    result.dataset.state = state;
    for (const part of result.querySelectorAll("[data-when]")) {
      part.hidden = !part.dataset.when.split(" ").includes(state);
    }
    for (const place of result.querySelectorAll("[data-fill]")) {
      place.textContent = values[place.dataset.fill] ?? "";
    }
  }

  /** The state in which an attempt ended for good; the reader's place moves there. */
  function conclude(state, values) {
    fields.disabled = false;
    form.hidden = state === "stored" || state === "duplicate";
    show(state, values);
    result.focus();
  }

  /** +7 or 8 and ten more digits, or the ten alone. Ten that begin with 7 or 8 are taken for eleven with one missing. */
  function isPhone(text) {
    return /^([78]\d{10}|[0-69]\d{9})$/.test(text.replace(/\D/g, ""));
  }

  function isRight(field) {
    if (field.name === "phone") return isPhone(field.value);
    return field.type === "checkbox" ? field.checked : field.value.trim() !== "";
  }

  /** Marks what is missing, and answers the first field at fault. */
  function mark() {
    const wrong = [...form.elements].filter((field) => field.required && !isRight(field));
    for (const field of form.querySelectorAll("[required]")) {
      const isWrong = wrong.includes(field);
      field.setAttribute("aria-invalid", String(isWrong));
      document.getElementById(`${field.id}-error`).hidden = !isWrong;
    }
    return wrong[0];
  }

  // --- attempts

  /** One attempt: the answer's status and body; a status of 0 if nobody knows what became of it. */
  async function post(body) {
    const timer = new AbortController();
    const timeout = setTimeout(() => timer.abort(), Number(form.dataset.timeoutMs));
    try {
      const answer = await fetch(form.dataset.endpoint, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
        credentials: "omit",
        signal: timer.signal,
      });
      return { status: answer.status, body: await answer.json() };
    } catch {
      // No connection, no answer, an answer that the browser may not show us, or one that is not ours.
      return { status: 0, body: {} };
    } finally {
      clearTimeout(timeout);
    }
  }

  const isDoubtful = ({ status }) => status === 0 || status === 408 || status >= 500;

  /** Posts until there is an answer that ends it; the last one, if none does. */
  async function deliver(body) {
    let wasDoubtful = filled.may_be_stored;
    for (let attempt = 0; ; attempt += 1) {
      show("sending");
      // From here on the server may have it, unless we are told that it has not.
      keep({ may_be_stored: true });
      const answer = await post(body);
      wasDoubtful ||= isDoubtful(answer);
      keep({ may_be_stored: wasDoubtful });
      const asked = answer.status === 429 ? answer.body.retry_after_seconds : 0;
      const isOver = !isDoubtful(answer) && (answer.status !== 429 || !(asked <= LONGEST_WAIT_S));
      if (isOver || attempt >= retryDelaysMs.length) return answer;
      // Many pages that lost the same server do not come back at the same moment.
      const waitMs = Math.max(asked * 1000, retryDelaysMs[attempt] * (0.75 + Math.random() / 2));
      show("waiting", { seconds: Math.ceil(waitMs / 1000) });
      await sleep(waitMs);
    }
  }

  async function send() {
    if (fields.disabled) return;
    const wrong = mark();
    if (wrong) {
      wrong.focus();
      return;
    }
    const body = lead();
    body.request_id = requestIdOf(contentOf(body));
    fields.disabled = true;
    show("sending");
    await takeTime(body);
    const answer = await deliver(body);
    const { ok, duplicate, request_id, error_code: code, retry_after_seconds: seconds } = answer.body;
    if (ok === true) {
      filled = { since: Date.now() };
      remember("sessionStorage", FILLED, filled);
      conclude(duplicate ? "duplicate" : "stored", { request_id });
      return;
    }
    if (isDoubtful(answer)) {
      conclude("failed");
      return;
    }
    if (answer.status === 429) conclude("limited", { minutes: Math.ceil((seconds ?? 3600) / 60) });
    else if (answer.status === 422) conclude("invalid");
    else conclude("refused", { code: code ?? answer.status });
  }

  form.noValidate = true;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  form.addEventListener("input", ({ target }) => {
    if (target.getAttribute("aria-invalid") === "true" && isRight(target)) mark();
  });
  document.getElementById("lead-again").addEventListener("click", send);
  document.getElementById("lead-next").addEventListener("click", () => {
    form.reset();
    form.hidden = false;
    result.hidden = true;
    form.elements.name.focus();
  });
  // Last, when everything above is in place: until then nothing can be filled in that would be lost.
  fields.disabled = false;
  document.getElementById("lead-broken").hidden = true;
})();
