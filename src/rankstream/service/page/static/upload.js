// @ts-check
// A file becomes a market: it is dropped on the list, looked at, corrected, and read by the server.

import { askAbout, byId, element, isAbort } from "./server.js";

/** What a column can be, and how people call that. @type {[string, string][]} */
const ROLES = [
  ["", "not used"], ["chosen", "what was chosen"], ["item", "item"], ["offered", "list of items"],
  ["priced", "items with prices"], ["flag", "1 where on offer"], ["observation", "receipt or visit"], ["price", "price"],
  ["count", "how often"], ["time", "time"], ["by", "separate markets"], ["available", "whether in stock"], ["ranking", "ranking"],
  ["offer_id", "ID of the offer"],
];
const GIVEN = ["chosen", "item", "offered", "observation", "count", "time", "available", "ranking", "offer_id"]; // roles of the reader
/** @type {string} */
let file = "";
/** @type {AbortController | null} */
let asked = null;
/** What the last look found. @type {any} */
let found = null;

/** A market's name out of a file's: as the server does it. @param {string} text */
const nameOf = (text) => text.replace(/(\.\w{1,8}){1,2}$/, "").replace(/[^\p{L}\p{N}_.-]+/gu, " ").trim().slice(0, 64).replace(/^[ .]+|[ .]+$/g, "") || "choices";

/** @returns {HTMLSelectElement[]} */
const selects = () => [...document.querySelectorAll("#sample select")].map((one) => /** @type {HTMLSelectElement} */ (one));

/** How the file is to be read, as the drop-downs say; nothing of it at the first look. */
function reading() {
  const chosen = selects(), nothing = byId("nothing").value.trim();
  /** @type {Record<string, any>} */
  const body = { file, ...(nothing ? { no_choice: nothing } : {}) };
  if (!chosen.length) return body;
  const has = (/** @type {string} */ role) => chosen.filter((one) => one.value === role).map((one) => one.dataset.column ?? "");
  /** @type {Record<string, any>} */
  const columns = Object.fromEntries(GIVEN.map((role) => [role, has(role)[0] ?? null]));
  if (has("priced").length) columns.offered = has("priced")[0];
  if (has("flag").length && found.n_columns === found.columns.length) columns.items = has("flag");
  body.columns = columns;
  body.by = has("by");
  if (has("priced").length) body.prices = "offered";
  else if (has("price").length) body.prices = has("flag").length ? has("price") : has("price")[0];
  return body;
}

/** Send a file to the server, and look at it. @param {File} one */
async function send(one) {
  const most = Number(byId("drop").dataset.most);
  forget();
  if (one.size > most) { byId("drop-problem").textContent = `${one.name} is ${Math.ceil(one.size / 1e6).toLocaleString("en")} MB; the limit is ${(most / 1e6).toLocaleString("en")} MB. Open it with rankstream open instead.`; return; }
  if (!one.size) { byId("drop-problem").textContent = `${one.name} is empty.`; return; }
  asked = new AbortController();
  const { signal } = asked, name = nameOf(one.name);
  byId("drop-state").textContent = `Sending ${one.name} …`;
  try {
    file = (await askAbout(name, `upload?name=${encodeURIComponent(one.name)}`, one, signal)).file;
    byId("market-name").value = name;
    await look(signal);
    byId("preview").hidden = false;
    byId("preview").scrollIntoView({ block: "nearest" });
  } catch (error) {
    if (!isAbort(error)) byId("drop-problem").textContent = error instanceof Error ? error.message : String(error);
  }
  if (!signal.aborted) byId("drop-state").textContent = "";
}

/** Have the server read the file as the form says, and show what it found. @param {AbortSignal} signal */
async function look(signal) {
  const place = byId("preview").hidden ? byId("drop-state") : byId("import-state");
  place.textContent = "Reading the file …";
  byId("preview-problem").textContent = "";
  byId("import").disabled = true;
  byId("account").setAttribute("aria-busy", "true");
  const said = reading(), wanted = selects().map((one) => one.value);
  found = await askAbout(byId("market-name").value || "choices", "reading", said, signal);
  place.textContent = "";
  showSample(wanted);
  showAccount();
  byId("account").setAttribute("aria-busy", "false");
}

/** After a change: look again, and give up the look before. */
async function changed() {
  asked?.abort();
  asked = new AbortController();
  const { signal } = asked;
  try { await look(signal); } catch (error) {
    if (isAbort(error)) return;
    byId("preview-problem").textContent = error instanceof Error ? error.message : String(error);
    byId("import-state").textContent = "";
  }
}

/** What the drop-down of a column says. @param {string} column @param {number} place @param {string[]} wanted */
function roleOf(column, place, wanted) {
  if (wanted.length) return wanted[place];
  if ((found.items ?? []).includes(column)) return "flag";
  return GIVEN.find((role) => found.roles?.[role] === column) ?? "";
}

/** The first rows, below a drop-down for each column. @param {string[]} wanted */
function showSample(wanted) {
  const heads = found.columns.map((/** @type {string} */ column, /** @type {number} */ place) => {
    const select = element("select", { "aria-label": `Role of ${column}`, "data-column": column }, ...ROLES.map(([role, words]) => element("option", { value: role }, words)));
    /** @type {HTMLSelectElement} */ (select).value = roleOf(column, place, wanted);
    select.addEventListener("change", changed);
    select.classList.toggle("is-used", Boolean(/** @type {HTMLSelectElement} */ (select).value));
    return element("th", { scope: "col" }, element("bdi", { dir: "ltr" }, column), select);
  });
  const rows = found.rows.map((/** @type {string[]} */ cells) => element("tr", {}, ...cells.map((cell, place) => element("td", { "data-title": found.columns[place] ?? "" }, element("bdi", { dir: "ltr" }, cell)))));
  const all = element("button", { type: "button", class: "link" }, "Show all");
  all.addEventListener("click", () => { byId("sample").classList.add("is-whole"); all.remove(); });
  if (found.rows.length <= 6 || byId("sample").classList.contains("is-whole")) all.hidden = true;
  const focus = document.activeElement instanceof HTMLSelectElement ? document.activeElement.dataset.column : null;
  const more = found.n_columns > found.columns.length ? [element("p", { class: "note" }, `The first ${found.columns.length} of ${found.n_columns.toLocaleString("en")} columns.`)] : [];
  byId("sample").replaceChildren(element("div", { class: "scroll stacks", tabindex: "0", role: "region", "aria-label": "The first rows" }, element("table", {}, element("caption", {}, `The first ${found.rows.length} rows `, all), element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows))), ...more);
  selects().find((one) => one.dataset.column === focus)?.focus();
}

/** What was read, and which columns could be used. */
function showAccount() {
  const [first, ...rest] = found.account ?? [];
  byId("preview-problem").textContent = found.problem || (found.is_taken ? "There is a market of this name already: choose another name." : "");
  byId("import").disabled = Boolean(found.problem || found.is_taken);
  const hints = (found.unused ?? []).filter((/** @type {any} */ one) => ["price", "group", "time"].includes(one.kind) && !selects().some((select) => select.dataset.column === one.name && select.value)).map((/** @type {any} */ one) => hint(one.name, one.kind));
  if (!byId("nothing").value && rest.some((/** @type {string} */ text) => text.includes("“Bought nothing” above") || text.includes("“nothing” above"))) hints.unshift(hint("nothing", "nothing"));
  byId("account").replaceChildren(...(first ? [element("h3", {}, "What was read"), element("p", { class: "lead" }, first), ...rest.map((/** @type {string} */ text) => element("p", { class: "lines" }, text)), ...hints] : []));
}

/** A column that is not used, and a button that uses it. @param {string} name @param {string} kind */
function hint(name, kind) {
  const [words, role] = kind === "nothing" ? ["can stand for customers who bought nothing, so that their visits count.", ""] : kind === "price" ? ["looks like prices. With prices, the page also shows demand by price.", "price"] : kind === "time" ? ["looks like times. With times, the page shows what changed.", "time"] : ["looks like groups, such as stores. Each can have a market of its own.", "by"];
  const use = element("button", { type: "button" }, "Use it"), columns = name.split(", ");
  use.addEventListener("click", () => {
    if (kind === "nothing") byId("nothing").value = name; else selects().filter((one) => columns.includes(one.dataset.column ?? "")).forEach((one) => { one.value = role; });
    changed();
  });
  return element("p", { class: "hint" }, "“", element("bdi", { dir: "ltr" }, name), `” ${words} `, use);
}

/** @param {SubmitEvent} event */
async function importFile(event) {
  event.preventDefault();
  const name = byId("market-name").value.trim();
  byId("import").disabled = true;
  byId("import-state").textContent = "Building the market …";
  try {
    const { markets } = await askAbout(name, "import", reading());
    location.assign(markets.length === 1 ? `/markets/${encodeURIComponent(markets[0])}` : "/");
  } catch (error) {
    byId("import-state").textContent = "";
    byId("preview-problem").textContent = error instanceof Error ? error.message : String(error);
    byId("import").disabled = false;
  }
}

/** Let go of the file before. */
function forget() {
  asked?.abort();
  [file, found] = ["", null];
  byId("sample").replaceChildren();
  byId("account").replaceChildren();
  byId("preview").hidden = true;
  byId("nothing").value = "";
  for (const id of ["drop-state", "drop-problem", "import-state", "preview-problem"]) byId(id).textContent = "";
}

/** Begin: take files that are dropped anywhere on the page, or chosen. */
export function begin() {
  const zone = byId("drop");
  addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  addEventListener("dragleave", () => zone.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    const [one] = event.dataTransfer?.files ?? [];
    if (one) send(one);
  });
  byId("choices-file").addEventListener("change", (/** @type {any} */ event) => {
    const [one] = event.target.files;
    event.target.value = "";
    if (one) send(one);
  });
  byId("nothing").addEventListener("change", changed);
  byId("market-name").addEventListener("change", changed);
  byId("cancel").addEventListener("click", () => { forget(); byId("choices-file").focus(); });
  byId("preview").addEventListener("submit", importFile);
}
