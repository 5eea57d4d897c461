// @ts-check
// The page of a market: its tabs, what is new on the server, and the parts that come later.

import { drawAll } from "./charts.js";
import * as bestOffer from "./best_offer.js";
import { recall } from "./memory.js";
import * as periods from "./periods.js";
import * as prices from "./prices.js";
import { ask, byId, element, items, toneOf } from "./server.js";
import * as whatIf from "./what_if.js";

const RENEW = 10_000; // milliseconds between two renewals of the panels
const status = byId("status");
const count = (/** @type {number} */ number) => Number(number).toLocaleString("en");
const tabs = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("main > .tab")]);
const links = /** @type {HTMLAnchorElement[]} */ ([...document.querySelectorAll(".tabs a")]);

/** Show the tab that the address names. */
function showTab() {
  prices.begin(); // costs may have been typed since
  if (document.body.dataset.begun && ["", "#overview"].includes(location.hash)) bestOffer.advise();
  const target = document.getElementById(location.hash.slice(1)), wanted = target?.closest(".tab") ?? tabs[0];
  for (const tab of tabs) tab.hidden = tab !== wanted;
  for (const link of links) {
    if (link.hash === `#${wanted.id}`) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  if (target && target !== wanted) target.scrollIntoView();
}

/** Put the parts of the page in place that were computed elsewhere. They come from our own templates, which escape every label. */
async function loadPanels() {
  const content = await ask("panels");
  if (content.waiting) throw Object.assign(new Error(content.waiting), { wait: 1 });
  for (const [tab, text] of Object.entries(content.tabs)) {
    const panel = document.querySelector(`[data-panel="${tab}"]`);
    if (!panel || panel.contains(document.activeElement)) continue;
    const open = [...panel.querySelectorAll("details")].map((one) => one.open), chosen = panel.querySelector("select")?.value;
    panel.innerHTML = text;
    panel.querySelectorAll("details").forEach((one, place) => { one.open = Boolean(open[place]); });
    drawAll(panel);
    const select = panel.querySelector("select");
    if (select && chosen) requestAnimationFrame(() => { select.value = chosen; select.dispatchEvent(new Event("change")); });
  }
  const chip = byId("change-chip");
  chip.hidden = false;
  chip.className = `chip ${toneOf(content.change.label)}`;
  chip.querySelector("summary").textContent = content.change.label;
  chip.querySelector("p").textContent = content.change.words;
  byId("reason").textContent = content.reason;
  byId("warnings").replaceChildren(...content.warnings.map((/** @type {string} */ words) => element("p", { class: "notice", role: "note" }, words)));
  whatIf.nameIntervals(content.interval_name);
  if (byId("age")) byId("age").textContent = content.age;
  periods.begin();
  prices.begin();
  bestOffer.advise(); // only now, as it takes longest
}

let loading = false, last = 0, again = 0;
async function renew() {
  if (loading) return;
  clearTimeout(again);
  if (document.hidden) { again = window.setTimeout(renew, RENEW); return; }
  loading = true;
  try {
    await loadPanels();
    last = Date.now();
  } catch (error) {
    const wait = /** @type {any} */ (error).wait || 2;
    again = window.setTimeout(renew, 1000 * wait);
  }
  loading = false;
}

function listen() {
  const source = new EventSource(`/markets/${encodeURIComponent(status.dataset.market)}/events`);
  const began = Date.now();
  /** @type {number | null} */
  let shown = null;
  source.onopen = () => { byId("link").textContent = status.dataset.file ? "" : "Live."; };
  source.onerror = () => { byId("link").textContent = "Disconnected: the server does not respond."; };
  source.addEventListener("records", (event) => {
    const now = JSON.parse(event.data);
    byId("records").textContent = count(now.records);
    byId("learned").textContent = now.learned === now.records ? "all" : count(now.learned);
    const bar = document.querySelector("progress");
    if (bar) bar.value = now.learned / Math.max(1, now.records);
  });
  let hadChart = Boolean(document.querySelector("figure"));
  source.addEventListener("progress", (event) => {
    const now = JSON.parse(event.data), bar = document.querySelector("progress");
    if (byId("waiting")) byId("waiting").textContent = now.text;
    if (bar && now.fraction) bar.value = now.fraction; else bar?.removeAttribute("value");
    if (!hadChart && now.text.startsWith("Fitting")) { hadChart = true; location.reload(); } // shares are known now
  });
  source.addEventListener("gap", (event) => {
    const now = JSON.parse(event.data);
    if (!status.dataset.ready) { location.reload(); return; }
    status.dataset.position = String(now.position);
    if (shown !== null && shown !== now.position) {
      clearTimeout(again);
      again = window.setTimeout(() => { renew(); whatIf.renew(); }, Math.max(0, last + RENEW - Date.now()));
    }
    shown = now.position;
  });
  source.addEventListener("alarm", (event) => {
    if (Date.now() - began < 3000) return; // those that were noticed before are in the page
    byId("alarms").textContent = `A change was detected at choice ${count(JSON.parse(event.data).choice)}.`;
  });
  addEventListener("pagehide", () => source.close());
}

/** Download the report, and say meanwhile that it is being written. @param {MouseEvent} event */
async function downloadReport(event) {
  event.preventDefault();
  const link = /** @type {HTMLAnchorElement} */ (event.currentTarget), place = byId("making");
  place.textContent = "Writing the report …";
  const answer = await fetch(link.href, { credentials: "same-origin" }).catch(() => null);
  if (answer?.ok) element("a", { href: URL.createObjectURL(await answer.blob()), download: link.download }).click();
  const page = answer && !answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null; // which says what is wrong
  place.textContent = answer?.ok ? "" : page?.querySelector("[role=alert]")?.textContent ?? "The server does not respond. Is it still running?";
}

if (status) {
  listen();
  byId("report")?.addEventListener("click", downloadReport);
  document.querySelectorAll(".origin").forEach((one) => { one.textContent = location.host; });
}
if (tabs.length) {
  byId("change-chip").className = `chip ${toneOf(byId("change-chip").textContent.trim())}`;
  document.body.classList.add("tabbed");
  addEventListener("hashchange", showTab);
  showTab();
  await recall();
  whatIf.begin();
  bestOffer.begin();
  if (document.querySelector("[data-panel] .loading")) renew(); else { last = Date.now(); periods.begin(); prices.begin(); bestOffer.advise(); }
  document.body.dataset.begun = String(items.length);
}
