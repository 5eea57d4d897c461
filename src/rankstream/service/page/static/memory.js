// @ts-check
// Margins, today's offer and the currency: in this browser, and with a token that may manage also on the server.

import { amount, ask, byId, CUSTOMERS, items } from "./server.js";

const place = `rankstream ${byId("status")?.dataset.market}`;
const manages = byId("status")?.dataset.manages === "yes";

/** @typedef {{margins: Record<string, number>, shelf: string[], currency: string}} Told Margins by item; the shelf by items at prices. */

/** @type {Told} */
export const told = { margins: {}, shelf: [], currency: "" };

/** @param {any} content */
function take(content) {
  if (content && typeof content.margins === "object" && Array.isArray(content.shelf)) {
    Object.assign(told, { margins: content.margins, shelf: content.shelf, currency: String(content.currency ?? "") });
  }
}

/** What was told before, here or to the server. */
export async function recall() {
  try { take(JSON.parse(localStorage.getItem(place) ?? "null")); } catch { /* nothing is stored, or nothing that can be read */ }
  const isEmpty = !Object.keys(told.margins).length && !told.shelf.length;
  if (isEmpty) take(await ask("preferences").catch(() => null));
}

let timer = 0;
/** Keep what is told now. */
export function remember() {
  try { localStorage.setItem(place, JSON.stringify(told)); } catch { /* this browser stores nothing */ }
  if (!manages) return;
  clearTimeout(timer);
  timer = window.setTimeout(() => ask("preferences", told, undefined, "PUT").catch(() => null), 800);
}

/** A value, for as many customers as all values are, with as many decimals as the one beside it. @param {number} value @param {number} [beside] */
export const money = (value, beside = value) => `${amount(CUSTOMERS * value, CUSTOMERS * beside)}${told.currency ? ` ${told.currency}` : ""}`;

/** A change of a value, with its sign. @param {number} change @param {number} [beside] */
export const gained = (change, beside) => `${change > 0 ? "+" : ""}${money(change, beside)}`;

/** What each item earns at each of its prices, by label. @param {Record<string, number>} [margins] */
export function earned(margins = told.margins) {
  /** @type {Record<string, number>} */
  const found = {};
  for (const item of items.filter((one) => !one.always)) {
    item.levels.forEach((label, place) => {
      const own = margins[item.label] ?? 0;
      found[label.trim()] = item.prices.length ? Number(item.prices[place]) - own : own;
    });
  }
  return found;
}

/** What is on the shelf today: as told, else everything at usual prices. @param {string[]} usual */
export function shelf(usual) {
  const known = new Set(items.flatMap((item) => item.levels.map((label) => label.trim())));
  const wanted = (told.shelf.length ? told.shelf : usual).filter((label) => known.has(label));
  return wanted.length ? wanted : items.map((item) => item.levels[item.usual].trim());
}
