// @ts-check
// The list of markets: sorted as people like, renewed now and then, with the trend and the change of each.

import { askAbout, byId, element, toneOf } from "./server.js";
import { begin } from "./upload.js";

const RENEW = 15_000; // milliseconds between two looks at the list
const WIDTH = 160, HEIGHT = 36;
let by = "", falls = false;
/** What was said of each market, so that a renewed list shows it at once. @type {Map<string, any>} */
const known = new Map();

/** @returns {HTMLTableRowElement[]} */
const rows = () => [...document.querySelectorAll("#markets tbody tr")].map((row) => /** @type {HTMLTableRowElement} */ (row));

/** Sort the list as the head says. */
function sort() {
  if (!by) return;
  const value = (/** @type {HTMLElement} */ row) => (by === "name" ? row.dataset.name ?? "" : Number(row.dataset[by]));
  const order = rows().sort((one, other) => {
    const [first, second] = [value(one), value(other)];
    return typeof first === "string" ? first.localeCompare(String(second), undefined, { numeric: true }) : first - Number(second);
  });
  document.querySelector("#markets tbody")?.append(...(falls ? order.reverse() : order));
  document.querySelectorAll("#markets [data-by]").forEach((head) => {
    if (/** @type {HTMLElement} */ (head).dataset.by === by) head.setAttribute("aria-sort", falls ? "descending" : "ascending"); else head.removeAttribute("aria-sort");
  });
}

/** Let the head of each column sort. */
function makeSortable() {
  document.querySelectorAll("#markets [data-by]").forEach((one) => {
    const head = /** @type {HTMLElement} */ (one), button = element("button", { type: "button", class: "sort" }, head.textContent ?? "");
    button.addEventListener("click", () => {
      falls = by === head.dataset.by ? !falls : head.dataset.by !== "name";
      by = head.dataset.by ?? "";
      sort();
    });
    head.replaceChildren(button);
  });
}

/** The shares of the best sellers over time, as small lines. @param {any} trend @param {string[]} sellers */
function lines(trend, sellers) {
  const svg = (/** @type {string} */ tag, /** @type {Record<string, string>} */ attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const [first, last] = [trend.at[0], trend.at[trend.at.length - 1]];
  /** @type {{item: string, shares: ([number, number, number] | null)[]}[]} */
  const items = sellers.flatMap((name) => trend.items.filter((/** @type {any} */ one) => one.item === name));
  if (!items.length) items.push(...trend.items.slice(0, 3));
  const most = Math.max(0.01, ...items.flatMap((one) => one.shares.map((share) => share?.[0] ?? 0)));
  const said = items.map((one) => {
    const seen = one.shares.filter((share) => share !== null).map((share) => `${(100 * share[0]).toFixed(0)} %`);
    return `${one.item} from ${seen[0]} to ${seen[seen.length - 1]}`;
  });
  const drawn = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: String(WIDTH), height: String(HEIGHT), role: "img", "aria-label": `Shares over time: ${said.join(", ")}` });
  items.forEach((one, place) => {
    const points = one.shares.flatMap((share, at) => (share === null ? [] : [`${(2 + (WIDTH - 4) * (trend.at[at] - first) / Math.max(1e-9, last - first)).toFixed(1)},${(HEIGHT - 3 - (HEIGHT - 6) * share[0] / most).toFixed(1)}`]));
    drawn.append(svg("polyline", { points: points.join(" "), class: `line-${place + 1}` }));
  });
  const title = svg("title", {});
  title.textContent = said.join("; ");
  drawn.prepend(title);
  return drawn;
}

/** Put the trend and the change of a market into its row. @param {HTMLTableRowElement} row @param {any} content */
function show(row, content) {
  if (!content) return;
  const place = row.querySelector(".trend"), states = row.querySelector(".states");
  if (content.trend && content.trend.at.length > 1) place?.replaceChildren(lines(content.trend, [...row.querySelectorAll(".seller bdi")].map((one) => /** @type {HTMLElement} */ (one).title)));
  states?.querySelector(".is-change")?.remove();
  states?.append(element("details", { class: `chip is-change ${toneOf(content.change.label)}` }, element("summary", {}, content.change.label), element("p", {}, content.change.words)));
}

/** Ask for the trend and the change of every market, one after the other. */
async function fill() {
  for (const row of rows()) show(row, known.get(row.dataset.market ?? ""));
  const left = rows().filter((row) => row.dataset.ready);
  let tries = 3 * left.length;
  for (let row = left.shift(); row; row = left.shift()) {
    const name = row.dataset.market ?? "";
    const content = await askAbout(name, "summary").catch(() => null);
    tries -= 1;
    if (content?.waiting && tries > 0) left.push(row);
    if (!content || content.waiting) continue;
    known.set(name, content);
    show(row, content);
  }
  document.body.dataset.begun = "yes";
}

/** Look at the list again; it comes from our own template, which escapes every label. */
async function renew() {
  const isUsed = document.hidden || document.querySelector("#markets details[open]") || document.querySelector("#markets")?.contains(document.activeElement);
  const answer = isUsed ? null : await fetch("/", { credentials: "same-origin" }).catch(() => null);
  if (answer?.ok && !answer.redirected) {
    const list = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of ["#markets tbody", ".heading"]) {
      const now = list.querySelector(part);
      if (now) document.querySelector(part)?.replaceWith(document.importNode(now, true));
    }
    sort();
    await fill();
  }
  setTimeout(renew, RENEW);
}

makeSortable();
if (byId("drop")) begin();
await fill();
setTimeout(renew, RENEW);
