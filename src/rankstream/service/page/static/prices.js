// @ts-check
// The best price of each item beside the others at their usual prices, by the demand curves and the costs that were told.

import { draw } from "./charts.js";
import { told } from "./memory.js";
import { ask, byId, element, items } from "./server.js";

const HEADS = ["item", "cost", "price: usual → best", "earns"]; // per 100 customers
const LOOK = 4000; // milliseconds until intervals are looked for again

/** Which chart has its bands, and how long they were waited for. */
let banded = "";

/**
 * Draw intervals around the demand curves as soon as the server has them: each point is an offer.
 * @param {HTMLElement} figure @param {{drawn: string[], points: {item: string, price: number, share: number, low?: number, high?: number}[]}} demand
 */
async function addBands(figure, { drawn, points: all }) {
  const points = all.filter((one) => drawn.includes(one.item));
  const values = figure.dataset.values ?? "";
  if (banded === values || points.some((one) => one.low !== undefined)) return;
  banded = values;
  const usual = items.map((item) => item.levels[item.usual].trim());
  const offers = points.map((one) => {
    const place = items.findIndex((item) => item.name === one.item), item = items[place];
    const level = item ? item.prices.findIndex((price) => Number(price) === one.price) : -1;
    return level < 0 ? null : { label: item.levels[level].trim(), offer: usual.map((label, at) => (at === place ? item.levels[level].trim() : label)) };
  });
  if (offers.some((one) => one === null)) return;
  for (;;) {
    const answer = await ask("predict", { offers: offers.map((one) => one?.offer), interval: 0.95 }).catch(() => null);
    if (!figure.isConnected || figure.dataset.values !== values) return;
    const ends = answer?.predictions?.map((/** @type {any} */ one, /** @type {number} */ at) => one.intervals?.[offers[at]?.label ?? ""]);
    if (ends?.every(Boolean)) {
      points.forEach((one, at) => { [one.low, one.high] = ends[at]; });
      figure.dataset.values = banded = JSON.stringify({ drawn, points: all });
      delete figure.dataset.width;
      draw(figure);
      return;
    }
    if (answer && answer.intervals !== "not yet") return;
    await new Promise((resolve) => setTimeout(resolve, LOOK));
  }
}

/** Fill the table of best prices, if there are demand curves. */
export function begin() {
  const source = /** @type {HTMLElement | null} */ (document.querySelector("#prices figure[data-kind=demand]"));
  const card = byId("best-prices");
  if (!source || !card) return;
  const demand = JSON.parse(source.dataset.values ?? "null");
  /** @type {{item: string, price: number, share: number}[]} */
  const points = demand.points;
  addBands(source, demand);
  const worths = [...new Set(points.map((one) => one.item))].map((name) => {
    const item = items.find((one) => one.name === name), cost = told.margins[item?.label ?? ""] ?? 0, own = points.filter((one) => one.item === name);
    const worth = (/** @type {{price: number, share: number}} */ one) => 100 * (one.price - cost) * one.share;
    const best = own.reduce((one, other) => (worth(other) > worth(one) ? other : one));
    const now = own.find((one) => one.price === Number(item?.prices[item.usual])) ?? best;
    return { name, cost: told.margins[item?.label ?? ""]?.toFixed(2) ?? "", prices: [now.price, best.price].map((one) => one.toFixed(2)), earns: [worth(now), worth(best)].map((one) => one.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })), gain: Math.round(100 * (worth(best) - worth(now))) / 100 };
  });
  const pair = (/** @type {string[]} */ [now, best], /** @type {boolean} */ changes) => (changes ? `${now} → ${best}` : now);
  const rows = worths.sort((one, other) => other.gain - one.gain).map(({ name, cost, prices, earns, gain }) => element("tr", gain > 0 ? { class: "pays" } : {},
    element("th", { scope: "row" }, element("bdi", { dir: "ltr" }, name)), ...[cost, pair(prices, gain > 0), pair(earns, gain > 0)].map((cell) => element("td", { class: "number" }, cell))));
  const heads = HEADS.map((head, place) => element("th", { scope: "col", class: place ? "number" : "" }, place > 2 && told.currency ? `${head}, ${told.currency}` : head));
  card.querySelector("table").replaceChildren(element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
  byId("no-costs").hidden = worths.some(({ cost }) => cost);
  card.hidden = false;
}
