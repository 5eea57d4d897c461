// @ts-check
// Before and after: any two periods of the shares over time, compared item by item.

import { draw, drawAll, points } from "./charts.js";
import { byId, element } from "./server.js";

const HEADS = ["item", "before", "after", "change, points"];
const MOST_BARS = 10; // items that are drawn, those that changed most; the table has all
const Z = 1.96; // standard errors of a 95 % interval
const SELECTS = ["before-from", "before-to", "after-from", "after-to"];

/** @typedef {[number, number, number]} Share A share and the ends of its interval. */

/** Offer the periods of the chart of shares over time, if there are two. */
export function begin() {
  const source = /** @type {HTMLElement | null} */ (document.querySelector("#changes figure[data-kind=trend]"));
  const card = byId("periods");
  if (!source || !card) return;
  const values = JSON.parse(source.dataset.values ?? "null"), number = values?.at.length ?? 0;
  if (number < 2) return;
  const day = (/** @type {number} */ at) => (values.dated ? new Date(1000 * at).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" }) : `${values.across} ${at.toLocaleString("en")}`);
  const half = Math.floor(number / 2), usual = [0, half - 1, half, number - 1]; // as the verdict above compares halves
  const selects = SELECTS.map((name) => byId(`period-${name}`));
  const compare = () => show(source, values, selects.map((one) => Number(one.value)));
  selects.forEach((select, place) => {
    const chosen = select.options.length === number ? select.value : String(usual[place]);
    select.replaceChildren(...values.spans.map((/** @type {[number, number]} */ span, /** @type {number} */ at) => new Option(day(span[place % 2]), String(at))));
    select.value = chosen;
    select.onchange = compare;
  });
  card.hidden = false;
  compare();
  drawAll(card);
}

/** The share of an item in several periods together, by Wilson's interval. @param {any} values @param {(Share | null)[]} shares @param {number} from @param {number} to @returns {Share | null} */
function pooled(values, shares, from, to) {
  let total = 0, chosen = 0;
  for (let at = Math.min(from, to); at <= Math.max(from, to); at += 1) {
    const share = shares[at];
    if (share) { total += values.choices[at]; chosen += values.choices[at] * share[0]; }
  }
  if (!total) return null;
  const share = chosen / total, middle = share + Z * Z / (2 * total);
  const wide = Z * Math.sqrt(share * (1 - share) / total + Z * Z / (4 * total * total)), scale = 1 + Z * Z / total;
  return [share, Math.max(0, (middle - wide) / scale), Math.min(1, (middle + wide) / scale)];
}

/** @param {HTMLElement} source @param {any} values @param {number[]} places */
function show(source, values, [from, to, later, last]) {
  const rows = values.items.flatMap((/** @type {any} */ one) => {
    const was = pooled(values, one.shares, from, to), is = pooled(values, one.shares, later, last);
    return was && is ? [{ item: one.item, was, is, change: 100 * (is[0] - was[0]), clear: is[1] > was[2] || is[2] < was[1] }] : [];
  }).sort((/** @type {any} */ one, /** @type {any} */ other) => other.change - one.change);
  const largest = [...rows].sort((one, other) => Math.abs(other.change) - Math.abs(one.change)).slice(0, MOST_BARS);
  const figure = byId("periods-chart");
  figure.dataset.kind = "moves";
  figure.dataset.values = JSON.stringify(rows.filter((/** @type {any} */ one) => largest.includes(one)));
  delete figure.dataset.width;
  draw(figure);
  figure.hidden = !rows.length;
  const text = (/** @type {Share} */ share) => `${(100 * share[0]).toFixed(1)} % [${(100 * share[1]).toFixed(1)}, ${(100 * share[2]).toFixed(1)}]`;
  const cells = rows.map((/** @type {any} */ one) => element("tr", {}, element("th", { scope: "row" }, element("bdi", { dir: "ltr" }, one.item)), ...[text(one.was), text(one.is), points(one.change)].map((cell, place) => element("td", { class: "number", "data-title": HEADS[place + 1] }, cell))));
  const heads = HEADS.map((head, place) => element("th", { scope: "col", class: place ? "number" : "" }, head));
  const caption = `${(source.querySelector("figcaption")?.textContent ?? "Shares").replace(/ over time.*/, "")}, with 95 % intervals`;
  byId("periods-note").textContent = `Pale bars may be chance.${caption.includes("all choices") ? " Shares of all choices also move with stock and prices: the verdict above compares the same offers." : ""}`;
  byId("periods-table").replaceChildren(rows.length ? element("div", { class: "scroll stacks", tabindex: "0", role: "region", "aria-label": "Shares of two periods" }, element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...cells))) : element("p", {}, "No item was chosen in both periods, so nothing can be compared."));
}
