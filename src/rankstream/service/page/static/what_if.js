// @ts-check
// What if: ticks and prices are answered at once, in place; intervals follow, and the address says what is asked.

import { points } from "./charts.js";
import { ask, byId, CUSTOMERS, element, isAbort, items, whyNone } from "./server.js";
import { earned, gained, money, remember, shelf, told } from "./memory.js";

const PAUSE = 60; // milliseconds: a tick so soon after another waits that long for the next, and one alone is asked at once
const LOOK = 2500; // milliseconds until intervals are looked for again
const table = byId("answer"), problem = byId("ask-problem");
/** @type {string[]} */
const usual = JSON.parse(byId("ask")?.dataset.usual ?? "[]");
/** @type {AbortController | null} */
let asked = null;
let timer = 0, last = -PAUSE;
/** @type {string[] | null} */
let baseline = null;
let isOwn = false; // a baseline that was set by hand stays

/** What shares are compared with, as the legend says it. */
const against = () => byId("baseline-name").textContent;

/** Compare with an offer from now on. @param {string[]} labels @param {string} name */
function compareWith(labels, name) {
  baseline = labels;
  byId("baseline-name").textContent = name;
}

const offer = () => items.filter((item) => item.on).map((item) => item.choice);
const everything = () => items.map((item) => item.levels[item.usual].trim());

/** Show an offer in the form. @param {string[]} labels */
export function tick(labels) {
  const wanted = new Set(labels);
  for (const item of items) {
    const level = item.levels.findIndex((label) => wanted.has(label.trim()));
    item.on = level >= 0;
    if (level >= 0) item.level = level;
  }
  changed();
}

/** Write what is asked into the address, so that it can be bookmarked and sent; margins are not in it. */
function writeAddress() {
  const address = new URL(location.href);
  address.search = "";
  const isUsual = items.every((item) => item.on && item.level === item.usual);
  if (!isUsual && items.length <= 400) {
    for (const item of items) {
      if (item.on) address.searchParams.append("on", item.key);
      if (item.on && item.slider && item.level !== item.usual) address.searchParams.append(`price-${item.key}`, String(item.level));
    }
  }
  history.replaceState(null, "", address);
}

/** After a tick or another price: ask soon, and give up what was asked before. */
export function changed() {
  for (const item of items) item.row.classList.toggle("off", !item.on);
  problem.textContent = "";
  table.setAttribute("aria-busy", "true");
  writeAddress();
  asked?.abort();
  clearTimeout(timer);
  timer = window.setTimeout(predict, performance.now() - last > PAUSE ? 0 : PAUSE);
  last = performance.now();
}

async function predict() {
  const now = offer();
  if (!items.some((item) => item.on && !item.always)) {
    problem.textContent = "No item is ticked. Tick one.";
    for (const item of items) clear(item);
    byId("summary").replaceChildren();
    table.setAttribute("aria-busy", "false");
    return;
  }
  asked = new AbortController();
  const { signal } = asked, compared = baseline ?? everything();
  table.setAttribute("aria-busy", "true");
  try {
    const known = Object.keys(told.margins).length > 0;
    const answer = await ask("predict", { offers: [now, compared], ...(known ? { margins: earned() } : {}) }, signal);
    const [shares, base] = answer.predictions.map((/** @type {any} */ one) => one.shares);
    show(shares, base, answer.model.provisional);
    if (known) showWorth(answer.predictions[0].worth, answer.predictions[1].worth);
    performance.mark("rankstream-painted");
    await lookForIntervals(now, signal);
  } catch (error) {
    if (!isAbort(error)) problem.textContent = error instanceof Error ? error.message : String(error);
  } finally {
    if (!signal.aborted) table.setAttribute("aria-busy", "false"); // a newer question is waiting otherwise
  }
}

/** Say what the intervals are, or why there are none: they are 95 % intervals unless the model ignores what choices depend on. @param {string} [name] */
export function nameIntervals(name) {
  const place = byId("intervals"), state = place.dataset.state ?? "";
  place.dataset.name = name ?? place.dataset.name;
  place.textContent = state && !state.startsWith(":") ? state : `${place.dataset.name}${state}`;
}

/** Intervals come later; nothing else moves. @param {string[]} now @param {AbortSignal} signal */
async function lookForIntervals(now, signal) {
  table.setAttribute("aria-busy", "false");
  for (;;) {
    const answer = await ask("predict", { offers: [now], interval: 0.95 }, signal);
    const ends = answer.predictions[0].intervals;
    byId("intervals").dataset.state = ends ? "" : answer.intervals === "not yet" ? ": being computed" : whyNone(answer.intervals);
    nameIntervals();
    if (ends) { showEnds(ends); return; }
    if (answer.intervals !== "not yet") return;
    await new Promise((resolve, reject) => {
      const wait = setTimeout(resolve, LOOK);
      signal.addEventListener("abort", () => { clearTimeout(wait); reject(new DOMException("", "AbortError")); });
    });
  }
}

/** Remove the last answer from a row. @param {any} item */
function clear(item) {
  for (const name of ["share", "ends", "change"]) item.row.querySelector(`.${name}`).textContent = "";
  for (const name of ["base", "range"]) item.row.querySelector(`.${name}`).hidden = true;
  item.row.querySelector(".fill").style.width = "0";
}

/** @param {Record<string, number>} shares @param {string} label @param {number} most */
const width = (shares, label, most) => `${Math.min(100, 100 * (shares[label] ?? 0) / most)}%`;
/** How much a full bar is. */
let most = 1;

/** @param {Record<string, number>} shares @param {Record<string, number>} base @param {boolean} provisional */
function show(shares, base, provisional) {
  most = Math.max(0.05, ...Object.values(shares), ...Object.values(base)) * 1.35; // room for intervals
  const own = baseByItem(base);
  /** @type {Move[]} */
  const moves = [];
  for (const item of items) {
    const cell = (/** @type {string} */ name) => /** @type {HTMLElement} */ (item.row.querySelector(`.${name}`));
    const share = item.on ? shares[item.choice] ?? 0 : 0, was = own.get(item) ?? 0;
    cell("fill").style.width = width({ share }, "share", most);
    cell("base").style.left = width({ was }, "was", most);
    cell("base").hidden = !own.has(item);
    cell("range").hidden = true;
    cell("share").textContent = item.on ? `${(100 * share).toFixed(1)} %` : "";
    cell("ends").textContent = "";
    const change = 100 * (share - was), shown = own.has(item) || item.on ? change : 0;
    cell("change").textContent = item.on ? points(shown) : "";
    cell("change").className = `number change ${tone(item.always, shown)}`;
    moves.push({ name: item.name, change: shown, tone: tone(item.always, shown) });
  }
  summarise(moves, provisional);
}

/** @typedef {{name: string, change: number, tone: string}} Move */

/** Whether a change is good for the shop: more customers who buy nothing are not. @param {boolean} isNothing @param {number} change */
const tone = (isNothing, change) => (Math.abs(change) < 0.05 ? "" : change > 0 !== isNothing ? "up" : "down");

/** The share of each item in the baseline, at whatever price. @param {Record<string, number>} base */
function baseByItem(base) {
  const found = new Map();
  for (const item of items) for (const label of item.levels) if (label.trim() in base) found.set(item, base[label.trim()]);
  return found;
}

/** @param {Record<string, [number, number]>} ends */
function showEnds(ends) {
  for (const item of items) {
    const pair = item.on ? ends[item.choice] : undefined;
    const range = /** @type {HTMLElement} */ (item.row.querySelector(".range"));
    range.hidden = !pair;
    if (!pair) continue;
    range.style.left = `${100 * pair[0] / most}%`;
    range.style.width = `${Math.max(0, Math.min(100 - 100 * pair[0] / most, 100 * (pair[1] - pair[0]) / most))}%`;
    const cell = item.row.querySelector(".ends");
    if (cell) cell.textContent = `${(100 * pair[0]).toFixed(1)} to ${(100 * pair[1]).toFixed(1)} %`;
  }
}

/** Who gains and who loses, in words. @param {Move[]} moves @param {boolean} provisional */
function summarise(moves, provisional) {
  const clear = moves.filter((one) => Math.abs(one.change) >= 0.05).sort((one, other) => Math.abs(other.change) - Math.abs(one.change));
  const own = items.filter((item) => !item.always), place = byId("summary");
  place.replaceChildren();
  if (provisional) place.append(element("p", { class: "notice" }, "Provisional: a better model is being fitted."));
  place.append(element("p", {}, `${own.filter((item) => item.on).length} of ${own.length} items are on offer, compared with ${against()}${baseline || !items.some((item) => item.slider) ? "" : " at usual prices"}.`));
  if (!clear.length) { place.append(element("p", { class: "note" }, "No share changes by 0.1 points or more.")); return; }
  const rows = clear.slice(0, 10).map((one) => element("tr", {}, element("th", { scope: "row" }, element("bdi", { dir: "ltr" }, one.name)), element("td", { class: `number ${one.tone}` }, points(one.change))));
  place.append(element("table", {}, element("caption", {}, "Largest changes, in points"), element("tbody", {}, ...rows)));
}

/** What the offer earns, where margins are known. @param {number} worth @param {number} before */
function showWorth(worth, before) {
  const gain = worth - before;
  byId("summary").prepend(element("p", { class: "figure", id: "worth" }, `${money(worth)} `, element("small", {}, `per ${CUSTOMERS} customers`)),
    element("p", { class: gain > 0 ? "up" : gain < 0 ? "down" : "note" }, `${gained(gain, worth)} against ${against()}`));
}

/** Begin: the form as the address says, with its answer. */
export function begin() {
  if (!items.length) return;
  for (const item of items) {
    item.box.addEventListener("change", changed);
    item.slider?.addEventListener("input", () => { item.level = item.level; changed(); });
    item.row.querySelectorAll("[data-step]").forEach((button) => button.addEventListener("click", () => {
      item.level = item.level + Number(/** @type {HTMLElement} */ (button).dataset.step);
      changed();
    }));
  }
  document.querySelectorAll("[data-preset]").forEach((button) => button.addEventListener("click", () => {
    const preset = /** @type {HTMLElement} */ (button).dataset.preset;
    if (!isOwn && preset === "shelf") compareWith([...new Set([...shelf(usual), ...items.filter((one) => one.always).map((one) => one.label)])], "today's offer");
    if (!isOwn && preset === "all") compareWith(everything(), "everything on offer");
    tick(preset === "all" ? everything() : preset === "none" ? [] : shelf(usual));
  }));
  byId("find").addEventListener("input", (/** @type {any} */ event) => {
    const wanted = event.target.value.trim().toLowerCase();
    for (const item of items) item.row.hidden = Boolean(wanted) && !item.name.toLowerCase().includes(wanted);
  });
  byId("set-baseline").addEventListener("click", () => {
    isOwn = true;
    compareWith(offer(), "your baseline");
    changed();
  });
  byId("set-shelf").addEventListener("click", () => { told.shelf = offer(); remember(); byId("copied").textContent = "Saved as today's offer."; });
  byId("copy").addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(location.href); byId("copied").textContent = "Copied."; } catch { byId("copied").textContent = "Copy it from the address bar."; }
  });
  byId("ask").addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
  changed();
}

/** Ask again, as the model is a new one. */
export const renew = () => { if (items.length && !problem.textContent) changed(); };
