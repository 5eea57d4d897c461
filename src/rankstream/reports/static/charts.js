// @ts-check
// Draws every figure of a page or a report from the numbers in its data-values, with Observable Plot.
// Without this file the tables below the figures say the same.

/** @typedef {{name: string, share: number, low?: number, high?: number, muted?: boolean}} Bar The outside option is muted. */
/** @typedef {[number, number, number] | null} Share A share and the ends of its interval. */
/** @typedef {{dated: boolean, across: string, at: number[], alarms: number[], drawn: number, items: {item: string, shares: Share[]}[]}} Trend The first items are drawn. */
/** @typedef {{item: string, share: number, gains: Record<string, number> | null, gains_intervals?: Record<string, [number, number]> | null}} Moves */

/** @type {any} */
const Plot = /** @type {any} */ (globalThis).Plot;
const COLOURS = [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `var(--series-${number})`);
const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "times", "cross", "wye"];
const HIGHLIGHT = "var(--series-2)", PLAIN = "var(--series-1)", SOFT = "var(--soft)";
const MOST_RULES = 200; // dots with an interval each: of more, only those that are missed have one
const LETTER = 7.2; // width of an average letter, in pixels

// Plot writes a <style> element into every chart, which the page's policy refuses. So charts are made in a document of
// their own, whose policy nobody asks, and lose that element; style.css has the same rules.
const inert = document.implementation.createHTMLDocument("");
const workshop = {
  documentElement: inert.documentElement, defaultView: window,
  createElement: (/** @type {string} */ name) => inert.createElement(name),
  createTextNode: (/** @type {string} */ text) => inert.createTextNode(text),
};

/** @param {Record<string, any>} options */
export function plot(options) {
  const drawn = Plot.plot({
    document: workshop, className: "plot", style: { fontSize: "13px", fontFamily: "inherit", overflow: "visible" },
    ...options,
  });
  drawn.querySelectorAll("style").forEach((/** @type {Element} */ one) => one.remove());
  // the figure says what it shows, and a group may not have a label of its own
  drawn.querySelectorAll("[aria-label]").forEach((/** @type {Element} */ one) => one.removeAttribute("aria-label"));
  return drawn;
}

/** A change, with its sign. @param {number} change */
export const points = (change) => (Math.abs(change) < 0.05 ? "0.0" : `${change > 0 ? "+" : "−"}${Math.abs(change).toFixed(1)}`);

/** @param {number} share */
export const percent = (share) => `${(100 * share).toFixed(1)} %`;

/** The beginning and the end of a long name, as names often differ at the end. @param {string} text @param {number} most */
export function brief(text, most) {
  const tail = Math.max(0, Math.floor(0.4 * most));
  return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1 - tail)).trimEnd()}…${text.slice(text.length - tail).trimStart()}`;
}

/** A name without its price, as charts of all items are at usual prices; of a customer type, each of its items. @param {string} text @param {number} most */
function short(text, most) {
  const parts = text.split(" > ").map((part) => part.replace(/ @ [\d.]+$/, ""));
  return parts.join(" > ").length <= most ? parts.join(" > ") : parts.map((part) => brief(part, Math.floor((most - 3 * (parts.length - 1)) / parts.length))).join(" > ");
}

/** @param {string[]} names @param {number} width */
function leftMargin(names, width) {
  const longest = Math.max(4, ...names.map((name) => name.replace(/ @ [\d.]+/g, "").length));
  return Math.min(LETTER * longest + 16, 0.42 * width, 300);
}

/** The settings of an axis of names. @param {string[]} names @param {number} left */
function nameAxis(names, left) {
  return { domain: names, label: null, tickSize: 0, tickFormat: (/** @type {string} */ name) => short(name, Math.floor((left - 14) / LETTER)) };
}

/** Names are left of the bars; on a telephone, long ones such as customer types are above them. @param {Bar[]} values @param {number} width */
function bars(values, width) {
  const names = values.map((one) => one.name), wanted = LETTER * Math.max(...names.map((name) => name.replace(/ @ [\d.]+/g, "").length));
  const isAbove = width < 560 && wanted > 0.42 * width, left = isAbove ? 8 : leftMargin(names, width), row = isAbove ? 42 : 26;
  const most = Math.max(...values.map((one) => one.high ?? one.share), 1e-6);
  const ends = values.filter((one) => one.low !== undefined), down = isAbove ? 8 : 0;
  return plot({
    width, marginLeft: left, marginRight: 8, marginTop: 4, marginBottom: 40, height: 48 + row * values.length,
    x: { domain: [0, 100 * most * (1 + 60 / Math.max(120, width - left - 68))], label: "% of customers", grid: true, ticks: Math.min(6, width / 90) },
    y: isAbove ? { domain: names, axis: null } : nameAxis(names, left), color: { type: "identity" },
    marks: [
      Plot.barX(values, { x: (/** @type {Bar} */ one) => 100 * one.share, y: "name", fill: (/** @type {Bar} */ one) => (one.muted ? SOFT : PLAIN), insetTop: 3 + 2 * down, insetBottom: 3, rx: 2 }),
      Plot.ruleY(ends, { x1: (/** @type {Bar} */ one) => 100 * (one.low ?? 0), x2: (/** @type {Bar} */ one) => 100 * (one.high ?? 0), y: "name", dy: down, stroke: "var(--ink)", strokeWidth: 1.5, marker: "tick" }),
      Plot.text(values, {
        x: (/** @type {Bar} */ one) => 100 * Math.max(one.share, one.high ?? 0), y: "name", dx: 6, dy: down, textAnchor: "start", fill: "var(--ink)",
        text: (/** @type {Bar} */ one) => percent(one.share),
      }),
      ...(isAbove ? [Plot.text(values, { x: 0, y: "name", dy: -10, textAnchor: "start", fill: "var(--ink)", text: (/** @type {Bar} */ one) => short(one.name, Math.floor(width / LETTER)) })] : []),
      Plot.ruleX([0], { stroke: "var(--line)" }),
    ],
  });
}

/** Lines with bands, by any number or by time. @param {any[]} rows @param {number} width @param {Record<string, any>} more */
function lines(rows, width, more) {
  const names = [...new Set(rows.map((one) => one.item))];
  const banded = rows.filter((one) => one.low !== undefined && one.low !== null);
  return plot({
    width, height: Math.max(220, Math.min(340, 0.55 * width)), marginRight: 16, marginLeft: 40, marginBottom: 40,
    y: { label: "% of customers", grid: true, zero: true, ticks: 5 },
    color: { domain: names, range: COLOURS },
    symbol: { domain: names, range: SYMBOLS, legend: names.length > 1, tickFormat: (/** @type {string} */ name) => brief(name, 44) }, // in its colour
    ...more.scales,
    marks: [
      ...(more.under ?? []),
      Plot.areaY(banded, { x: "x", y1: "low", y2: "high", z: "item", fill: "item", fillOpacity: names.length > 3 ? 0.06 : 0.14 }),
      Plot.lineY(rows, { x: "x", y: "share", z: "item", stroke: "item", strokeWidth: 2 }),
      Plot.dot(rows, { x: "x", y: "share", z: "item", stroke: "item", fill: "item", symbol: "item", r: 3 }),
      Plot.tip(rows, Plot.pointer({
        x: "x", y: "share", stroke: "var(--line)", fill: "var(--paper)", title: (/** @type {any} */ one) => one.title,
      })),
    ],
  });
}

/** @param {Trend} values @param {number} width */
function trend(values, width) {
  const at = values.at.map((one) => (values.dated ? new Date(1000 * one) : one));
  const alarms = values.alarms.map((one) => (values.dated ? new Date(1000 * one) : one));
  const rows = values.items.slice(0, values.drawn).flatMap((one) => one.shares.flatMap((share, place) => (share === null ? [] : [{
    item: one.item, x: at[place], share: 100 * share[0], low: 100 * share[1], high: 100 * share[2],
    title: `${one.item}: ${percent(share[0])} [${(100 * share[1]).toFixed(1)}, ${(100 * share[2]).toFixed(1)}]`,
  }])));
  return lines(rows, width, {
    scales: { x: { label: values.dated ? null : values.across, ...(values.dated ? { type: "utc" } : {}), ticks: Math.max(4, Math.min(8, width / 110)), nice: true } },
    under: [Plot.ruleX(alarms, { stroke: HIGHLIGHT, strokeWidth: 2, strokeDasharray: "4 3" })],
  });
}

/** @param {{drawn: string[], points: {item: string, price: number, share: number, low?: number, high?: number}[]}} values @param {number} width */
function demand(values, width) {
  const rows = values.points.filter((one) => values.drawn.includes(one.item)).map((one) => ({
    ...one, x: one.price, share: 100 * one.share,
    low: one.low === undefined ? undefined : 100 * one.low, high: one.high === undefined ? undefined : 100 * one.high,
    title: `${one.item} at ${one.price.toFixed(2)}: ${percent(one.share)}`,
  }));
  return lines(rows, width, { scales: { x: { label: "own price", nice: true, ticks: Math.min(8, width / 90), tickFormat: ".2f" } } });
}

/** @param {[string, number, number, number, number][]} values @param {number} width */
function dots(values, width) {
  const rows = values.map(([item, observed, low, high, predicted]) => ({
    item, observed: 100 * observed, low: 100 * low, high: 100 * high, predicted: 100 * predicted,
    missed: predicted < low - 1e-6 || predicted > high + 1e-6,
  }));
  const side = Math.min(width, 520), most = Math.max(...rows.map((one) => Math.max(one.high, one.predicted)), 1);
  const wide = Math.min(most, 1.1 * Math.max(...rows.map((one) => one.predicted), 1));
  const stroke = (/** @type {any} */ one) => (one.missed ? HIGHLIGHT : PLAIN);
  return plot({
    width: side, height: side, marginLeft: 44, marginBottom: 40,
    x: { domain: [0, wide], label: "predicted share, %", grid: true, ticks: 6 }, y: { domain: [0, most], label: "observed share, %", grid: true, ticks: 6 },
    color: { type: "identity" }, symbol: { type: "identity" },
    marks: [
      Plot.line([[0, 0], [wide, wide]], { stroke: SOFT, strokeDasharray: "4 4" }),
      Plot.ruleX(rows.length > MOST_RULES ? rows.filter((one) => one.missed) : rows, { x: "predicted", y1: "low", y2: "high", stroke, strokeOpacity: 0.5 }),
      Plot.dot([...rows].sort((one, other) => Number(one.missed) - Number(other.missed)), { x: "predicted", y: "observed", stroke, strokeOpacity: (/** @type {any} */ one) => (one.missed || rows.length <= MOST_RULES ? 1 : 0.35), r: 3, symbol: (/** @type {any} */ one) => (one.missed ? "triangle" : "circle") }),
      Plot.tip(rows, Plot.pointer({
        x: "predicted", y: "observed", fill: "var(--paper)", stroke: "var(--line)",
        title: (/** @type {any} */ one) => `${one.item}: predicted ${one.predicted.toFixed(1)} %, observed ${one.observed.toFixed(1)} %`,
      })),
    ],
  });
}

/** Whether an interval starts at 0 as it is shown, so that the data do not support a gain. @param {Moves} row @param {string} to */
const isUnsure = (row, to) => (row.gains_intervals?.[to]?.[0] ?? 1) < 0.005;

/** On a telephone, of the most chosen items, as far as there is room. @param {Moves[]} all @param {number} width */
function matrix(all, width) {
  const left = leftMargin(all.map((one) => one.item), width), fit = Math.max(4, Math.floor((width - left - 30) / 24));
  const largest = [...all].sort((one, other) => other.share - one.share).slice(0, fit), values = all.filter((one) => largest.includes(one));
  const names = values.map((one) => one.item), gone = values.filter((one) => one.gains).map((one) => one.item);
  const cells = values.flatMap((one) => Object.entries(one.gains ?? {}).filter(([to]) => names.includes(to)).map(([to, part]) => ({ gone: one.item, to, part: Math.max(0, part), unsure: isUnsure(one, to) })));
  const most = Math.max(0.05, ...cells.map((one) => one.part));
  const room = (width - left) / names.length, isTight = room < 30, last = names.find((name) => !gone.includes(name)); // the outside option is in no row
  const isLevel = LETTER * Math.max(...names.map((name) => short(name, 16).length)) < room, top = isTight || isLevel ? 44 : Math.min(120, LETTER * Math.max(...names.map((name) => name.length)) * 0.8 + 24);
  return plot({
    width, marginLeft: left, marginTop: top, marginRight: 30, height: top + 12 + Math.max(26, Math.min(40, room)) * gone.length,
    x: { domain: names, axis: "top", label: isTight && last !== undefined ? `takes instead (${names.indexOf(last) + 1}: ${short(last, 14)}) →` : "takes instead →", tickRotate: isTight || isLevel ? 0 : -40, tickSize: 0, tickFormat: (/** @type {string} */ name, /** @type {number} */ place) => (isTight ? String(place + 1) : short(name, 16)) },
    color: { type: "identity" }, y: { ...nameAxis(gone, left), ...(isTight ? { tickFormat: (/** @type {string} */ name) => `${names.indexOf(name) + 1} ${short(name, Math.floor((left - 14) / LETTER) - 3)}` } : {}) },
    marks: [
      Plot.cell(cells, { x: "to", y: "gone", fill: (/** @type {any} */ one) => (one.unsure ? SOFT : PLAIN), fillOpacity: { value: (/** @type {any} */ one) => 0.65 * one.part / most, scale: null }, inset: 1, rx: 2 }),
      ...(room > 22 ? [Plot.text(cells, { x: "to", y: "gone", text: (/** @type {any} */ one) => (one.part < 0.005 ? "" : `${(100 * one.part).toFixed(0)}`), fill: "var(--ink)" })] : []),
      Plot.tip(cells, Plot.pointer({ x: "to", y: "gone", fill: "var(--paper)", stroke: "var(--line)", title: (/** @type {any} */ one) => `Without ${one.gone}, ${percent(one.part)} of its buyers take ${one.to}` })),
    ],
  });
}

/** Where the buyers of one item go. @param {Moves[]} values @param {number} width @param {string} chosen */
function flows(values, width, chosen) {
  const row = values.find((one) => one.item === chosen && one.gains) ?? values.find((one) => one.gains);
  if (!row) return document.createElement("p");
  const parts = Object.entries(row.gains ?? {}).filter(([, part]) => part > 0.002).sort((one, other) => other[1] - one[1]).slice(0, 12);
  const gap = 0.09; // labels of small bands stay apart
  let start = 0;
  const bands = parts.map(([to, part], place) => {
    const from = start, at = start + gap * place;
    start += part;
    return { to, part, from, at, colour: isUnsure(row, to) ? SOFT : COLOURS[place % COLOURS.length] };
  });
  const shift = gap * (bands.length - 1) / 2;
  const points = bands.flatMap((one) => [
    { ...one, x: 0, y1: one.from + shift, y2: one.from + one.part + shift }, { ...one, x: 1, y1: one.at, y2: one.at + one.part },
  ]);
  const right = Math.min(0.5 * width, LETTER * Math.max(8, ...parts.map(([to]) => to.replace(/ @ [\d.]+$/, "").length + 8)) + 12);
  return plot({
    width, height: 60 + 34 * Math.max(5, bands.length), marginLeft: 8, marginRight: right, marginTop: 24, marginBottom: 8,
    x: { domain: [0, 1], axis: null }, y: { axis: null, reverse: true }, color: { type: "identity" },
    marks: [
      Plot.areaY(points, { x: "x", y1: "y1", y2: "y2", z: "to", fill: "colour", fillOpacity: 0.35, stroke: "colour", strokeWidth: 1, curve: "bump-x" }),
      Plot.text([row], { x: 0, y: 0, frameAnchor: "top-left", textAnchor: "start", dy: -14, fontWeight: 600, fill: "var(--ink)", text: () => `Buyers of ${short(row.item, Math.floor(width / LETTER) - 14)}` }),
      Plot.text(bands, { x: 1, y: (/** @type {any} */ one) => one.at + one.part / 2, dx: 8, textAnchor: "start", fill: "var(--ink)", text: (/** @type {any} */ one) => `${short(one.to, Math.floor(right / LETTER) - 8)} ${percent(one.part)}` }),
    ],
  });
}

/** @param {{points: [number, number | null, number | null][], changes: number[]}} values @param {number} width */
function course(values, width) {
  const rows = values.points.flatMap(([x, distance, gap]) => [
    ...(distance === null ? [] : [{ item: "distance from the data", x, share: distance, title: `${x.toLocaleString("en")} records: distance ${distance.toFixed(4)}` }]),
    ...(gap === null ? [] : [{ item: "gap: how much the fit could still improve", x, share: gap, title: `${x.toLocaleString("en")} records: gap ${gap.toFixed(4)}` }]),
  ]);
  return lines(rows, width, {
    scales: { x: { label: "records", ticks: Math.min(8, width / 110), nice: true }, y: { label: null, grid: true, zero: true, ticks: 5 } },
    under: [Plot.ruleX(values.changes, { stroke: HIGHLIGHT, strokeWidth: 2, strokeDasharray: "4 3" })],
  });
}

/** Gains to the right, losses to the left. @param {{item: string, change: number, clear: boolean}[]} values @param {number} width */
function moves(values, width) {
  const names = values.map((one) => one.item), left = leftMargin(names, width), all = values.map((one) => one.change);
  const low = Math.min(0, ...all), high = Math.max(0.1, ...all), pad = 48 * (high - low) / Math.max(60, width - left - 110);
  return plot({
    width, marginLeft: left, marginRight: 12, marginBottom: 40, height: 56 + 26 * values.length,
    x: { domain: [low - pad * Number(low < 0), high + pad], label: "change of the share, points", grid: true, ticks: Math.min(6, width / 90) },
    y: nameAxis(names, left), color: { type: "identity" },
    marks: [
      Plot.barX(values, { x: "change", y: "item", insetTop: 3, insetBottom: 3, rx: 2, fill: (/** @type {any} */ one) => (one.change > 0 ? PLAIN : HIGHLIGHT), fillOpacity: (/** @type {any} */ one) => (one.clear ? 1 : 0.45) }),
      ...[true, false].map((up) => Plot.text(values.filter((one) => (one.change > 0) === up), { x: "change", y: "item", dx: up ? 6 : -6, textAnchor: up ? "start" : "end", fill: "var(--ink)", text: (/** @type {any} */ one) => points(one.change) })),
      Plot.ruleX([0], { stroke: "var(--ink)" }),
    ],
  });
}

/** The best value of each size. @param {{size: number, value: number, chosen?: boolean}[]} values @param {number} width */
function sizes(values, width) {
  const many = "per 100 customers", y = (/** @type {any} */ one) => 100 * one.value;
  return plot({
    width, height: Math.max(200, Math.min(300, 0.45 * width)), marginLeft: 52, marginRight: 16, marginTop: 30, marginBottom: 40,
    x: { label: "items on offer", tickFormat: "d", ticks: Math.min(values.length, width / 50) }, y: { label: `value ${many}`, grid: true, nice: true, ticks: 5 },
    marks: [
      Plot.lineY(values, { x: "size", y, stroke: PLAIN, strokeWidth: 2 }),
      Plot.dot(values, { x: "size", y, fill: PLAIN, r: (/** @type {any} */ one) => (one.chosen ? 6 : 3.5) }),
      Plot.tip(values, Plot.pointer({ x: "size", y, fill: "var(--paper)", stroke: "var(--line)", title: (/** @type {any} */ one) => `${one.size} items: ${y(one).toPrecision(4)} ${many}` })),
    ],
  });
}

/** @type {Record<string, (values: any, width: number, chosen: string) => Element>} */
const KINDS = { bars, trend, demand, dots, matrix, flows, course, moves, sizes };

/** Draw a figure as wide as it is now. @param {HTMLElement} figure */
export function draw(figure) {
  const place = figure.querySelector(".drawing"), kind = figure.dataset.kind ?? "";
  if (!(place instanceof HTMLElement) || !(kind in KINDS)) return;
  const width = Math.floor(figure.clientWidth);
  if (!width || figure.dataset.width === String(width)) return; // in a tab that is not shown, it waits
  const values = JSON.parse(figure.dataset.values ?? "null"), select = figure.querySelector("select");
  if (kind === "flows" && select && !select.options.length) addChoices(figure, select, values);
  place.replaceChildren(KINDS[kind](values, width, select?.value ?? ""));
  figure.dataset.width = String(width);
}

/** @param {HTMLElement} figure @param {HTMLSelectElement} select @param {Moves[]} values */
function addChoices(figure, select, values) {
  select.append(...values.filter((one) => one.gains).map((one) => new Option(short(one.item, 60), one.item)));
  select.addEventListener("change", () => { delete figure.dataset.width; draw(figure); });
}

const observer = new ResizeObserver((entries) => entries.forEach((one) => draw(/** @type {HTMLElement} */ (one.target))));

/** Draw all figures within an element, now and whenever their width changes. @param {ParentNode} root */
export function drawAll(root) {
  root.querySelectorAll("figure[data-kind]").forEach((figure) => observer.observe(figure));
}

drawAll(document);
