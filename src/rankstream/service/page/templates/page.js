"use strict";
// The page without this file works as well: it shows how things were when it was loaded.
(() => {
  const byId = (id) => document.getElementById(id);
  const status = byId("status");
  if (!status) return;
  const count = (number) => Number(number).toLocaleString("en");
  let shown = null, loading = false, last = 0;

  async function part(name, form) {
    const answer = await fetch(location.pathname, {
      method: form ? "POST" : "GET", body: form, headers: { "Rankstream-Part": name }, credentials: "same-origin",
    });
    if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
    return answer.text();
  }

  // Whatever is put into the page comes from our own templates, which escape every label.
  function put(element, text) {
    const open = [...element.querySelectorAll("details")].map((one) => one.open);
    element.innerHTML = text;
    element.querySelectorAll("details").forEach((one, place) => { one.open = Boolean(open[place]); });
  }

  async function refresh() {
    const panels = byId("panels");
    if (loading || document.hidden || panels.contains(document.activeElement)) return;
    loading = true;
    try {
      if (!byId("what-if")) { location.reload(); return; }
      put(panels, await part("panels"));
    } catch { byId("link").textContent = "The page could not be renewed."; }
    loading = false;
    last = Date.now();
  }

  const source = new EventSource(status.dataset.events);
  source.onopen = () => { byId("link").textContent = "Live."; };
  source.onerror = () => { byId("link").textContent = "Not live: the server does not answer."; };
  source.addEventListener("records", (event) => {
    const now = JSON.parse(event.data);
    byId("records").textContent = count(now.records);
    byId("learned").textContent = count(now.learned);
  });
  source.addEventListener("gap", (event) => {
    const now = JSON.parse(event.data);
    byId("position").textContent = count(now.position);
    byId("gap").textContent = now.gap === null ? "none yet" : now.gap.toFixed(4);
    if (shown !== null && shown !== now.position) setTimeout(refresh, Math.max(0, last + 10000 - Date.now()));
    if (shown === null && !byId("what-if")) setTimeout(refresh, 2000);  // its pictures are being drawn
    shown = now.position;
  });
  const began = Date.now();
  source.addEventListener("alarm", (event) => {
    if (Date.now() - began < 3000) return;  // those that were noticed before are in the page
    byId("alarms").textContent = `A change was noticed at choice ${count(JSON.parse(event.data).choice)}.`;
  });
  addEventListener("pagehide", () => source.close());

  const form = byId("what-if");
  if (!form) return;
  let asked = 0, timer = 0;
  // Margins stay in this browser, market by market; where it stores nothing, they are typed anew.
  const place = `rankstream margins ${form.dataset.market}`;
  const margins = () => [...form.querySelectorAll("input.margin")];
  function remember() {
    const given = margins().filter((one) => one.value.trim()).map((one) => [one.name, one.value.trim()]);
    try { localStorage.setItem(place, JSON.stringify(given)); } catch { return; }
  }
  try {
    const known = new Map(JSON.parse(localStorage.getItem(place) || "[]"));
    margins().forEach((one) => { one.value = one.value || (known.get(one.name) ?? ""); });
  } catch { /* nothing is stored, or nothing that can be read */ }
  form.addEventListener("input", (event) => { if (event.target.matches("input.margin")) remember(); });
  // Looking again for intervals changes the table alone: what was said above it stays.
  function renew(element, text) {
    const fresh = document.createElement("div");
    fresh.innerHTML = text;
    const old = element.querySelector(".scroll"), now = fresh.querySelector(".scroll");
    if (old && now) old.replaceWith(now); else put(element, text);
  }

  async function ask(button, again) {
    clearTimeout(timer);  // a look for intervals must not overtake what is asked now
    const number = ++asked, fields = new URLSearchParams(new FormData(form));
    fields.set("ask", button ? button.value : "shares");
    byId("answer").setAttribute("aria-busy", "true");
    try {
      const text = await part("what-if", fields);
      if (number !== asked) return;
      (again ? renew : put)(byId("answer"), text);
      const offer = byId("answer").querySelector("[data-ticked]");
      if (button && button.value !== "shares" && offer) {
        const keys = new Set(offer.dataset.ticked.split(" "));
        form.querySelectorAll("input[name=on]").forEach((box) => { box.checked = keys.has(box.value); });
        const at = new Map(offer.dataset.at.trim().split(" ").map((one) => one.split(":")));
        form.querySelectorAll("select").forEach((one) => { one.value = at.get(one.name.slice(6)) ?? one.value; });
      }
      waitForIntervals();
    } catch { byId("answer").textContent = "There was no answer: try again."; }
    byId("answer").removeAttribute("aria-busy");
  }
  function waitForIntervals() {
    if (byId("answer").querySelector("[data-waiting]")) timer = setTimeout(() => ask(null, true), 3000);
  }
  form.addEventListener("change", (event) => { if (event.target.matches("input[name=on], select")) ask(null); });
  form.addEventListener("submit", (event) => { event.preventDefault(); ask(event.submitter); });
  waitForIntervals();
})();
