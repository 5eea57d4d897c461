// @ts-check
// Best offer: margins and constraints in, the offer that earns most beside today's, and what is proven of it.

import { drawAll } from "./charts.js";
import { amount, ask, byId, CUSTOMERS, element, isAbort, items, Refused, whyNone } from "./server.js";
import { earned, gained, money, remember, shelf, told } from "./memory.js";
import { tick } from "./what_if.js";

const TRIES = 5; // questions to a busy server before it is given up
const LOOK = 2500; // milliseconds until intervals are looked for again
const LOOSE = 1.5; // times what was found, from which on a limit says little
const free = items.filter((item) => !item.always), nothing = items.find((item) => item.always);
/** @type {string[]} */
const usual = JSON.parse(byId("ask")?.dataset.usual ?? "[]");
/** @type {Map<string, {money: HTMLInputElement, state: HTMLSelectElement}>} */
const fields = new Map();
/** @type {AbortController | null} */
let asked = null;

/** A number as people type it, with a comma or a point. @param {string} text */
const numberIn = (text) => (text.trim() === "" ? NaN : Number(text.trim().replace(",", ".")));

/** What is typed, by item. */
function margins() {
  /** @type {Record<string, number>} */
  const found = {};
  for (const item of free) {
    const text = fields.get(item.key)?.money.value ?? "";
    const value = numberIn(text);
    if (text.trim() && !(Math.abs(value) < 1e12)) throw new Error(`${item.name}: ${text.slice(0, 20)} is not a number. Write one such as 1.5.`);
    if (text.trim()) found[item.label] = value;
  }
  return found;
}

/** A whole number that may be left out. @param {string} id @param {string} name */
function whole(id, name) {
  const text = byId(id).value.trim();
  if (text && !/^\d{1,4}$/.test(text)) throw new Error(`${name}: ${text.slice(0, 20)} is not a whole number. Leave it empty for no limit.`);
  return text ? Number(text) : null;
}

/** The question, in the form of the API. @param {Record<string, number>} given */
function constraints(given) {
  const has = (/** @type {string} */ state) => free.filter((item) => fields.get(item.key)?.state.value === state).map((item) => item.label);
  const must = has("must"), never = [...new Set([...has("never"), ...free.filter((item) => !(item.label in given) && !must.includes(item.label)).map((item) => item.label)])];
  const amounts = (/** @type {boolean} */ priced) => Object.fromEntries(free.filter((item) => (item.prices.length > 0) === priced).map((item) => [item.label, given[item.label] ?? 0]));
  /** @type {Record<string, any>} */
  const said = {
    margins: { ...amounts(false), ...(nothing ? { [nothing.label]: 0 } : {}) }, must, never, no_choice: nothing?.label ?? null,
    at_least: whole("at-least", "At least"), at_most: whole("at-most", "At most"), present: present(), budget: 2,
  };
  const most = whole("changes-most", "The number of changes");
  if (most !== null) said.changes = most;
  if (Object.keys(amounts(true)).length) said.costs = amounts(true);
  return said;
}

/** Today's offer without the no-purchase option. */
const present = () => shelf(usual).filter((label) => label !== nothing?.label);

/** An offer with the no-purchase option. @param {string[]} labels */
const withNothing = (labels) => [...labels, ...(nothing && !labels.includes(nothing.label) ? [nothing.label] : [])];

/** Ask, and ask again where the server had no time for it. @param {string} how @param {any} body @param {AbortSignal} signal */
async function patiently(how, body, signal) {
  const began = Date.now(), place = byId("searching");
  let words = "Searching …";
  const say = () => { if (!signal.aborted) place.textContent = `${words} ${Date.now() - began < 3000 ? "" : `${Math.round((Date.now() - began) / 1000)} s`}`; };
  const timer = setInterval(say, 1000);
  say();
  try {
    for (let tries = 1; ; tries += 1) {
      try { return await ask(how, body, signal); } catch (error) {
        if (!(error instanceof Refused) || ![429, 503].includes(error.status) || tries >= TRIES) throw error;
        words = "The server is busy. Still searching …";
        say();
        await new Promise((resolve) => setTimeout(resolve, 1000 * (error.wait || 1)));
      }
    }
  } finally {
    clearInterval(timer);
    if (!signal.aborted) place.textContent = "";
  }
}

/** The answer to the last question: a search that is cut short may find less than one before. */
let known = { question: "", value: -Infinity, answer: /** @type {any} */ (null) };

/** Ask for the best offer, and keep the better of two answers to one question, so that both tabs say the same. @param {any} body @param {AbortSignal} signal */
async function decide(body, signal) {
  const question = JSON.stringify([body, byId("status").dataset.position]), answer = await patiently("decide", body, signal);
  const value = (answer.decision.decision ?? answer.decision).value;
  if (known.question === question && known.value > value) return known.answer;
  known = { question, value, answer };
  advised = "";
  return answer;
}

/** What advice was asked for last, so that the same is not asked again. */
let advised = "", advising = new AbortController();

/** What to change and what it is worth, on the first tab: with the margins that were told, or what is missing. */
export async function advise() {
  const place = byId("advice-words");
  if (!place) return;
  byId("advice").hidden = false;
  const link = (/** @type {string} */ text) => element("a", { href: "#best-offer" }, text);
  if (!Object.keys(told.margins).length) {
    place.replaceChildren(element("p", {}, `Enter what ${free.some((item) => item.prices.length) ? "each item costs you" : "a sale earns"}, and this page says which change earns most. `, link("Enter it")));
    return;
  }
  const question = JSON.stringify([told, present(), byId("status").dataset.position]);
  if (advised === question) return;
  advised = question;
  advising.abort();
  advising = new AbortController();
  const { signal } = advising;
  place.replaceChildren(element("p", { class: "note" }, "Searching for the best change …"));
  try {
    const given = margins(), answer = await decide(constraints(given), signal);
    advised = question;
    const decision = answer.decision.decision ?? answer.decision, now = present(), offer = /** @type {string[]} */ (decision.offer ?? answer.decision.offer);
    const gain = decision.value - (decision.context?.present_value ?? NaN), words = differences(now, offer);
    place.replaceChildren(...(!words.length || !(gain > 0)
      ? [element("p", {}, "Today's offer is the best by this model. ", link("See why"))]
      : [element("p", { class: "figure" }, `${gained(gain)} `, element("small", {}, `per ${CUSTOMERS.toLocaleString("en")} customers`)),
        element("p", { id: "advice-ends" }),
        element("ul", { class: "steps-to-take" }, ...words.map(([mark, text]) => element("li", { class: mark }, text))),
        element("p", { class: "note" }, `Compared with today's offer (${told.shelf.length ? "as you saved it" : "the most frequent recent offer"}); ${decision.proven ? "proven best by this model" : "the best that was found"}. `, link("Both offers side by side"))]));
    if (byId("advice-ends")) {
      await lookForIntervals(offer, given, signal, (_, then, why) => {
        byId("advice").classList.toggle("unsure", Boolean(then) && then.gain[0] <= 0);
        byId("advice-ends").textContent = then ? `95 % interval ${ends(then.gain)}${certainty(then.gain)}.${caution(then.gain)}` : `${why[0].toUpperCase()}${why.slice(1)}.`;
      });
    }
  } catch (error) {
    if (isAbort(error)) return;
    place.replaceChildren(element("p", {}, `No recommendation: ${error instanceof Error ? error.message : error} `, link("Search yourself")));
  }
}

/** What to do to get from one offer to another: the kind of change, and what. @param {string[]} now @param {string[]} offer @returns {[string, string][]} */
function differences(now, offer) {
  const same = (/** @type {string} */ label, /** @type {string[]} */ others) => others.find((other) => itemOf(other) === itemOf(label));
  const listed = (/** @type {string[]} */ texts) => `${texts.slice(0, 5).join(", ")}${texts.length > 5 ? ` and ${texts.length - 5} more` : ""}`;
  const added = offer.filter((label) => !same(label, now)).map((label) => nameOf(label)), gone = now.filter((label) => !same(label, offer)).map((label) => nameOf(label, false));
  const priced = offer.filter((label) => same(label, now) && !now.includes(label)).map((label) => `${nameOf(label)} (now ${priceOf(same(label, now) ?? "")})`);
  /** @type {[string, string, string[]][]} */
  const kinds = [["added", "Add", added], ["gone", "Drop", gone], ["altered", "Price", priced]];
  return kinds.filter(([, , texts]) => texts.length).map(([mark, verb, texts]) => [mark, `${verb} ${listed(texts)}`]);
}

/** @param {SubmitEvent} event */
async function search(event) {
  event.preventDefault();
  const how = event.submitter instanceof HTMLButtonElement ? event.submitter.value || "decide" : "decide";
  const problem = byId("decide-problem"), place = byId("decision");
  problem.textContent = "";
  asked?.abort();
  asked = new AbortController();
  const { signal } = asked;
  try {
    const given = margins();
    if (!Object.keys(given).length) throw new Error("No item has a margin or a cost. Type at least one, or choose a file.");
    const answer = await (how === "decide" ? decide(constraints(given), signal) : patiently(how, constraints(given), signal));
    const decision = answer.decision.decision ?? answer.decision;
    if (how !== "decide") { // its values are by one random draw: say what the model of this page says
      const [now, then] = (await ask("predict", { offers: [withNothing(present()), withNothing(answer.decision.offer)], margins: earned(given) }, signal)).predictions;
      Object.assign(decision, { value: then.worth, shares: then.shares, by_size: {}, context: { ...decision.context, present_value: now.worth } });
    }
    show(place, { ...decision, offer: answer.decision.offer, note: endedEarly(answer.decision) }, how, given);
    await lookForIntervals(answer.decision.offer, given, signal, showIntervals);
  } catch (error) {
    if (isAbort(error)) return;
    place.replaceChildren();
    problem.textContent = error instanceof Error ? error.message : String(error);
  }
}

/** The sentence about a search that ended early, among the warnings; those of the model are above the tabs. @param {{warnings?: string[]}} answer */
const endedEarly = (answer) => (answer.warnings ?? []).find((one) => one.startsWith("The server is busy"));

/** The item of a label, which may have a price. @param {string} label */
const itemOf = (label) => items.find((one) => one.levels.some((level) => level.trim() === label))?.key ?? label;

/** The price of an item, if it has one. @param {string} label */
function priceOf(label) {
  const item = items.find((one) => one.levels.some((level) => level.trim() === label));
  return item?.prices[item.levels.findIndex((level) => level.trim() === label)] ?? "";
}

/** The name of an item, as people read it, at its price. @param {string} label @param {boolean} [priced] */
function nameOf(label, priced = true) {
  const name = items.find((one) => one.levels.some((level) => level.trim() === label))?.name ?? label;
  return priced && priceOf(label) ? `${name} at ${priceOf(label)}` : name;
}

/** @param {HTMLElement} place @param {any} found @param {string} how @param {Record<string, number>} given */
function show(place, found, how, given) {
  const now = present(), worth = found.context?.present_value, isSame = now.length === found.offer.length && now.every((label) => found.offer.includes(label));
  const sameItem = (/** @type {string} */ label, /** @type {string[]} */ others) => others.find((other) => itemOf(other) === itemOf(label));
  const list = (/** @type {string[]} */ labels, /** @type {string[]} */ others, /** @type {string} */ mark) => element("ul", {}, ...[...labels].sort((one, other) => nameOf(one).localeCompare(nameOf(other))).map((label) => {
    const before = sameItem(label, others), change = before && before !== label;
    return element("li", before === label ? {} : { class: change ? (mark === "added" ? "altered" : "") : mark }, element("bdi", { dir: "ltr" }, nameOf(label)));
  }));
  const head = how === "decide" ? "The best offer" : "The next offer to try";
  const side = (/** @type {string} */ title, /** @type {number | undefined} */ value, /** @type {string} */ id, /** @type {Element} */ offer) => element("div", {}, element("h3", {}, title), element("p", { class: "figure" }, value === undefined ? "" : money(value)), element("p", { class: "note" }, `per ${CUSTOMERS.toLocaleString("en")} customers `, element("span", { id })), offer);
  const best = known.answer?.decision.offer ?? [], isBest = best.length === found.offer.length && found.offer.every((/** @type {string} */ label) => best.includes(label));
  const proof = found.proven ? "Proven best: by this model, no allowed offer is worth more." : `The best that was found. It is not proven best: another may earn up to ${money(found.bound)} per ${CUSTOMERS.toLocaleString("en")} customers.${found.bound > LOOSE * found.value ? " That limit is far from what was found: with so many items at several prices, nothing closer is proven in time." : ""}`;
  const trial = `Drawn at random among the offers that may be the best: the likelier, the more often. Ask again for another draw.${isBest ? " This one is also the best offer that was found." : ""}`;
  const without = free.filter((item) => !(item.label in given)).length;
  const card = element("section", { class: "card", "aria-labelledby": "decision-title" },
    element("h2", { id: "decision-title" }, `${head}${isSame ? " is today's" : ""}`),
    element("p", { class: "figure", id: "gain" }, worth === undefined || worth === null ? "" : gained(found.value - worth)),
    element("p", { class: "note" }, `gain over today's offer per ${CUSTOMERS.toLocaleString("en")} customers `, element("span", { id: "gain-ends" })),
    element("div", { class: "pair" },
      side("Today", worth ?? undefined, "today-ends", list(now, found.offer, "dropped")),
      side("Proposed", found.value, "proposed-ends", list(found.offer, now, "added"))),
    element("p", { id: "proof" }, ...(found.note ? [element("strong", {}, found.note), " "] : []), how === "decide" ? proof : trial),
    ...(without ? [element("p", { class: "note" }, `${without} ${without === 1 ? "item was" : "items were"} left out, because no margin or cost was given.`)] : []),
    ...(found.context?.nearness?.is_extrapolation ? [element("p", { class: "notice" }, "This offer is far from anything in the data. Try it in one place first.")] : []));
  const buttons = element("p", { class: "tools" });
  const take = element("button", { type: "button" }, "Try it in What if"), load = element("button", { type: "button" }, "Download as CSV");
  take.addEventListener("click", () => { tick([...found.offer, ...(nothing ? [nothing.label] : [])]); location.hash = "what-if"; });
  load.addEventListener("click", () => download(found.offer, found.shares ?? {}, earned(given)));
  buttons.append(take, load);
  card.append(buttons);
  place.replaceChildren(card);
  const by = Object.entries(found.by_size ?? {}).map(([size, value]) => ({ size: Number(size), value: Number(value), chosen: Number(size) === found.offer.length }));
  if (by.length > 1) {
    const figure = element("figure", { class: "chart", "data-kind": "sizes", "data-values": JSON.stringify(by) }), rows = by.map((one) => element("tr", {}, element("th", { scope: "row" }, String(one.size)), element("td", { class: "number" }, money(one.value))));
    const drawing = element("div", { class: "drawing", role: "img", "aria-label": "The best value for each number of items; the table below has the numbers" });
    figure.append(drawing, element("details", {}, element("summary", {}, "Numbers"), element("table", {}, element("tbody", {}, ...rows))));
    place.append(element("section", { class: "card" }, element("h2", {}, "The value of shelf space"), figure));
    drawAll(place);
  }
}

/** The ends of an interval, with as many decimals as the value between them. @param {[number, number]} pair */
export const ends = ([low, high]) => `[${[low, high].map((end) => amount(CUSTOMERS * end, CUSTOMERS * Math.max(Math.abs(low + high) / 2, (high - low) / 4))).join(", ")}]`;

/** Whether a gain is clear. @param {[number, number]} gain */
const certainty = (gain) => (gain[0] > 0 ? ", a clear gain" : ", may be chance");

/** What to make of that. @param {[number, number]} gain */
const caution = (gain) => (gain[0] > 0 ? "" : " Try it in one place first.");

/**
 * How sure the worth of today's offer and of another offer is; it comes later, and until then the reason why not.
 * @param {string[]} offer @param {Record<string, number>} given @param {AbortSignal} signal
 * @param {(now: any, then: any, why: string) => void} tell
 */
async function lookForIntervals(offer, given, signal, tell) {
  const body = { offers: [withNothing(present()), withNothing(offer)], interval: 0.95, margins: earned(given) };
  for (;;) {
    const answer = await ask("predict", body, signal);
    const [now, then] = answer.predictions;
    if (then.worth_interval) { tell(now, then, ""); return; }
    tell(null, null, answer.intervals === "not yet" ? "interval: being computed" : whyNone(answer.intervals));
    if (answer.intervals !== "not yet") return;
    await new Promise((resolve, reject) => {
      const wait = setTimeout(resolve, LOOK);
      signal.addEventListener("abort", () => { clearTimeout(wait); reject(new DOMException("", "AbortError")); });
    });
  }
}

/** @param {any} now @param {any} then @param {string} why */
function showIntervals(now, then, why) {
  byId("gain-ends").textContent = then ? `${ends(then.gain)}${certainty(then.gain)}` : `(${why})`;
  if (!then) return;
  byId("today-ends").textContent = ends(now.worth_interval);
  byId("proposed-ends").textContent = ends(then.worth_interval);
}

/** @param {string[]} offer @param {Record<string, number>} shares @param {Record<string, number>} earns */
function download(offer, shares, earns) {
  const cell = (/** @type {string} */ text) => {
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text; // no spreadsheet runs it
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const rows = offer.map((label) => {
    const item = items.find((one) => one.levels.some((level) => level.trim() === label));
    const share = shares[label] ?? shares[item?.label ?? ""] ?? "";
    return [cell(item?.label ?? label), priceOf(label), String(share), String(earns[label] ?? "")].join(",");
  });
  const link = element("a", { href: URL.createObjectURL(new Blob([["item,price,share,margin", ...rows, ""].join("\n")], { type: "text/csv" })), download: "offer.csv" });
  link.click();
}

/** Read margins from a table of two columns, separated by commas, semicolons or tabs. @param {string} text */
function readMargins(text) {
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/).filter((line) => line.trim());
  const separator = ["\t", ";", ","].find((one) => (lines[0] ?? "").includes(one)) ?? ",";
  const heads = (lines[0] ?? "").split(separator).map((head) => head.trim().toLowerCase());
  const at = (/** @type {string[]} */ ...names) => heads.findIndex((head) => names.includes(head));
  const margin = at("margin"), cost = at("cost", "costs", "unit_cost"), price = at("price"), only = heads.length === 2 ? 1 : -1;
  const known = new Map(free.map((item) => [item.label, item]));
  let filled = 0;
  /** What a row says of an item: its cost where prices are chosen, its margin otherwise. @param {string[]} cells @param {boolean} priced */
  const money = (cells, priced) => {
    const column = priced ? cost : margin;
    if (column < 0 && !priced && price >= 0 && cost >= 0) return String(Number((numberIn(cells[price] ?? "") - numberIn(cells[cost] ?? "")).toFixed(6)));
    return cells[column < 0 ? only : column] ?? "";
  };
  for (const line of lines.slice(1)) {
    const cells = line.split(separator).map((cell) => cell.trim().replace(/^"(.*)"$/, "$1"));
    const item = known.get(cells[0]), field = fields.get(item?.key ?? ""), value = item ? money(cells, item.prices.length > 0) : "";
    if (field && value && Number.isFinite(numberIn(value))) { field.money.value = value; filled += 1; }
  }
  byId("margin-problem").textContent = filled ? "" : "No margin or cost was found. The file needs a heading, item names in the first column, and a column margin (or price and unit_cost).";
  keep();
}

function keep() {
  try { told.margins = margins(); } catch { return; } // something that is not a number yet
  told.currency = byId("currency").value.trim().slice(0, 10);
  remember();
}

/** Begin: the form with what was told before. */
export function begin() {
  const form = byId("decide");
  if (!form) return;
  for (const item of free) {
    const row = form.querySelector(`tr[data-key="${item.key}"]`);
    fields.set(item.key, { money: row.querySelector("input"), state: row.querySelector("select") });
    const known = told.margins[item.label];
    const field = fields.get(item.key);
    if (field && typeof known === "number") field.money.value = String(known);
  }
  byId("currency").value = told.currency;
  byId("margins").addEventListener("input", keep);
  byId("currency").addEventListener("input", keep);
  byId("same").addEventListener("input", (/** @type {any} */ event) => { fields.forEach((field) => { field.money.value = event.target.value; }); keep(); });
  byId("margin-file").addEventListener("change", async (/** @type {any} */ event) => {
    const [file] = event.target.files;
    if (file && file.size < 5_000_000) readMargins(await file.text());
  });
  form.addEventListener("submit", search);
  if (byId("status").dataset.manages === "yes") byId("margins-kept").textContent = "What you enter is kept in this browser and on the server.";
}
