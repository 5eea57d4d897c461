// @ts-check
// Questions to the server, in the form of the API; and numbers as the page writes them.

const market = document.getElementById("status")?.dataset.market ?? "";

/** An answer that is not what was asked for. */
export class Refused extends Error {
  /** @param {string} sentence @param {number} status @param {number} wait */
  constructor(sentence, status, wait) { super(sentence); this.status = status; this.wait = wait; }
}

/**
 * Ask about the market of this page.
 * @param {string} path @param {any} [body] @param {AbortSignal} [signal] @param {string} [method]
 * @returns {Promise<any>}
 */
export const ask = (path, body, signal, method) => askAbout(market, path, body, signal, method);

/**
 * Ask about any market; a file is sent as it is.
 * @param {string} name @param {string} path @param {any} [body] @param {AbortSignal} [signal] @param {string} [method]
 * @returns {Promise<any>}
 */
export async function askAbout(name, path, body, signal, method = body === undefined ? "GET" : "POST") {
  const isFile = body instanceof Blob;
  /** @type {Record<string, string>} */
  const headers = body === undefined ? {} : { "Content-Type": isFile ? "application/octet-stream" : "application/json" };
  let answer;
  try {
    answer = await fetch(`/page/${encodeURIComponent(name)}/${path}`, {
      method, signal, headers, credentials: "same-origin", body: body === undefined || isFile ? body : JSON.stringify(body),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refused("The server does not respond. Is it still running?", 0, 5);
  }
  const content = await answer.json().catch(() => ({}));
  if (answer.status === 401) location.assign(`/login?to=${encodeURIComponent(location.pathname)}`);
  if (!answer.ok) throw new Refused(content.error ?? "There was no answer. Try again.", answer.status, Number(answer.headers.get("Retry-After") ?? 0));
  return content;
}

/** What values are per. */
export const CUSTOMERS = 100;

/**
 * A number with as many decimals as its size deserves, or the size of what it stands beside: 131, 26.3, 1.52, 0.043.
 * @param {number} number @param {number} [beside]
 */
export function amount(number, beside = number) {
  const size = Math.abs(beside), digits = size >= 100 || !size ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : Math.min(6, 1 - Math.floor(Math.log10(size)));
  const text = number.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return /[1-9]/.test(text) ? text.replace("-", "−") : text.replace("-", "");
}

/** The tone of a chip that says whether a market changed. @param {string} label */
export const toneOf = (label) => (label.startsWith("Changed") ? "care" : label.startsWith("Tastes stable") ? "good" : "");

/** @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/** @param {unknown} error @returns {boolean} whether somebody gave the question up */
export const isAbort = (error) => error instanceof DOMException && error.name === "AbortError";

/**
 * An element with text; labels are put in as text alone, so that none can become a part of the page.
 * @param {string} tag @param {Record<string, string>} attributes @param {...(Node | string)} content
 */
export function element(tag, attributes, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
}

/** An item of the market, and the row of What if that shows it. */
export class Item {
  /** @param {HTMLTableRowElement} row */
  constructor(row) {
    const known = JSON.parse(row.dataset.item ?? "{}");
    this.row = row;
    this.key = row.dataset.key ?? "";
    /** @type {string} */ this.label = known.label; // as the API knows it
    /** @type {string} */ this.name = row.querySelector("bdi")?.title ?? ""; // as people read it
    /** @type {string[]} */ this.levels = known.levels;
    /** @type {string[]} */ this.prices = known.prices;
    /** @type {number} */ this.usual = known.level;
    /** @type {boolean} */ this.always = known.always;
    this.box = /** @type {HTMLInputElement} */ (row.querySelector("input[name=on]"));
    this.slider = /** @type {HTMLInputElement | null} */ (row.querySelector("input[type=range]"));
  }

  get on() { return this.box.checked; }
  set on(value) { if (!this.always) this.box.checked = value; }
  get level() { return this.slider ? Number(this.slider.value) : this.usual; }
  set level(value) {
    if (!this.slider) return;
    this.slider.value = String(value);
    this.slider.setAttribute("aria-valuetext", this.prices[this.level]);
    const shown = this.row.querySelector("output");
    if (shown) shown.textContent = this.prices[this.level];
  }
  /** The item at its price, as the API knows it. */
  get choice() { return this.levels[this.level].trim(); }
}

/** Why there are no intervals, in words that need no heading. @param {string} reason */
export const whyNone = (reason) => reason.replace(/^(none|not available): /, "no intervals: ");

export const items = [...document.querySelectorAll("#answer tbody tr")].map((row) => new Item(/** @type {HTMLTableRowElement} */ (row)));
