// @ts-check
// Before and after: any two periods of the shares over time, compared item by item.

import { draw, drawAll } from "./charts.js";
import { byId, element } from "./server.js";

const HEADS = ["item", "before", "after", "change, points"];

/** Offer the periods of the chart of shares over time, if there are two. */
export function begin() {
  const source = /** @type {HTMLElement | null} */ (document.querySelector("#changes figure[data-kind=trend]"));
  const card = byId("periods");
  if (!source || !card) return;
  const values = JSON.parse(source.dataset.values ?? "null");
  if (!values || values.at.length < 2) return;
  const name = (/** @type {number} */ at) => (values.dated ? new Date(1000 * at).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" }) : `${values.across} ${at.toLocaleString("en")}`);
  const selects = [byId("period-before"), byId("period-after")];
  selects.forEach((select, place) => {
    const chosen = select.value;
    select.replaceChildren(...values.at.map((/** @type {number} */ at, /** @type {number} */ number) => new Option(`around ${name(at)}`, String(number))));
    select.value = chosen || String(place ? values.at.length - 1 : 0);
    select.onchange = () => show(source, values, selects.map((one) => Number(one.value)));
  });
  card.hidden = false;
  show(source, values, selects.map((one) => Number(one.value)));
  drawAll(card);
}

/** @param {HTMLElement} source @param {any} values @param {number[]} places */
function show(source, values, [before, after]) {
  const rows = values.items.flatMap((/** @type {any} */ one) => {
    const [was, is] = [one.shares[before], one.shares[after]];
    return was && is ? [{ item: one.item, was, is, change: 100 * (is[0] - was[0]), clear: is[1] > was[2] || is[2] < was[1] }] : [];
  });
  const figure = byId("periods-chart");
  figure.dataset.kind = "moves";
  figure.dataset.values = JSON.stringify(rows);
  delete figure.dataset.width;
  draw(figure);
  figure.hidden = !rows.length;
  const text = (/** @type {number[]} */ share) => `${(100 * share[0]).toFixed(1)} % [${(100 * share[1]).toFixed(1)}, ${(100 * share[2]).toFixed(1)}]`;
  const cells = rows.map((/** @type {any} */ one) => element("tr", {}, element("th", { scope: "row" }, element("bdi", { dir: "ltr" }, one.item)), ...[text(one.was), text(one.is), `${one.change > 0 ? "+" : ""}${one.change.toFixed(1)}`].map((cell, place) => element("td", { class: "number", "data-title": HEADS[place + 1] }, cell))));
  const heads = HEADS.map((head, place) => element("th", { scope: "col", class: place ? "number" : "" }, head));
  byId("periods-table").replaceChildren(rows.length ? element("div", { class: "scroll stacks", tabindex: "0", role: "region", "aria-label": "Shares of two periods" }, element("table", {}, element("caption", {}, `${(source.querySelector("figcaption")?.textContent ?? "Shares").replace(/ over time.*/, "")}, with 95 % intervals`), element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...cells))) : element("p", {}, "There were no such choices in both of these periods."));
}
