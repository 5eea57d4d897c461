// @ts-check
// The best price of each item beside the others at their usual prices, by the demand curves and the costs that were told.

import { told } from "./memory.js";
import { amount, byId, element, items } from "./server.js";

/** Fill the table of best prices, if there are demand curves. */
export function begin() {
  const source = /** @type {HTMLElement | null} */ (document.querySelector("#prices figure[data-kind=demand]"));
  const card = byId("best-prices");
  if (!source || !card) return;
  /** @type {{item: string, price: number, share: number}[]} */
  const points = JSON.parse(source.dataset.values ?? "[]");
  const rows = [...new Set(points.map((one) => one.item))].map((name) => {
    const item = items.find((one) => one.name === name), cost = told.margins[item?.label ?? ""] ?? 0;
    const worth = (/** @type {{price: number, share: number}} */ one) => (one.price - cost) * one.share;
    const best = points.filter((one) => one.item === name).reduce((one, other) => (worth(other) > worth(one) ? other : one));
    const cells = [amount(cost), item ? item.prices[item.usual] : "", amount(best.price), amount(1000 * worth(best))];
    return element("tr", {}, element("th", { scope: "row" }, element("bdi", { dir: "ltr" }, name)), ...cells.map((cell) => element("td", { class: "number" }, cell)));
  });
  const heads = ["item", "cost", "usual price", "best price", "value per 1,000 customers"].map((head, place) => element("th", { scope: "col", class: place ? "number" : "" }, head));
  card.querySelector("table").replaceChildren(element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
  card.hidden = false;
}
