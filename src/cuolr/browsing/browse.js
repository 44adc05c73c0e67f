"use strict";
// All text from the log goes through textContent: nothing of it is ever read as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const overview = data.overview, outcome = overview.evaluation.outcome, live = data.views === null;
const ROWS = 50;
const places = { overview: document.getElementById("overview"), query: document.getElementById("query") };
const search = document.getElementById("search"), message = document.getElementById("message");

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== ""));
  return made;
}
function draw(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
const minus = (text) => text.replace(/(^|[\s(])-(?=\d)/g, "$1−");
const whole = (value) => Math.round(value).toLocaleString("en");
const fixed = (value, digits) => minus(value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
const signed = (value, digits = 1) => (value > 0 ? "+" : "") + fixed(value, digits);
const percent = (value) => `${signed(100 * value)} %`;
const plural = (number, word) => `${whole(number)} ${number === 1 ? word : word.replace(/y$/, "ie") + "s"}`;

// The first view.
const orders = {
  "worst losses": (a, b) => order(a.change, b.change),
  "largest gains": (a, b) => order(b.change, a.change),
  "most sessions": (a, b) => b.sessions - a.sessions,
  "most moved": (a, b) => b.moved - a.moved || b.sessions - a.sessions,
};
function order(a, b) { return (a === null) - (b === null) || a - b; }
let chosenOrder = "worst losses", limit = ROWS;

function showOverview() {
  const found = overview.evaluation;
  places.overview.replaceChildren(
    make("section", { class: "findings", "aria-label": "Recommendation" },
      make("p", { class: "verdict" }, make("b", {}, found.recommendation), `: ${minus(found.reason)}.`),
      notes().map((note) => make("p", {}, note))),
    make("section", { "aria-label": "Queries" }, make("h2", {}, "Queries"), make("div", { id: "table" })),
    make("section", {}, make("h2", {}, "Examination by position"), examination()),
  );
  showTable();
}
function* eachNote() {
  const found = overview.evaluation;
  if (found.trained_on_these_queries) yield "The model was trained on these clicks: changes of single queries are overestimated.";
  else if (found.held_out) yield "The recommendation is from what training held out. Changes of single queries below include clicks that the model was trained on: they are overestimated.";
  if (!found.identifiable) yield "Position bias is not identifiable from this log: rates of documents at different positions compare less reliably than their intervals say.";
  if (overview.hidden) yield `${plural(overview.hidden, "query")} of fewer than ${data.min_sessions} sessions ${overview.hidden === 1 ? "is" : "are"} hidden, for people’s privacy.`;
}
function notes() { return [...eachNote()]; }

function matching() {
  const text = search.value.trim().toLowerCase();
  return overview.rows.filter((row) => row.query_id.toLowerCase().includes(text)).sort(orders[chosenOrder]);
}
function showTable() {
  const table = document.getElementById("table"), rows = matching(), all = overview.rows.length;
  const radios = make("div", { class: "measures", role: "radiogroup", "aria-label": "Order" }, Object.keys(orders).map((name) =>
    make("label", {}, make("input", { type: "radio", name: "order", value: name, checked: name === chosenOrder,
      on: { change: () => { chosenOrder = name; showTable(); document.querySelector(`input[value="${name}"]`).focus(); } } }), make("span", {}, name))));
  const rest = live ? "; the query box finds the others by their full name" : "; choose another number with --queries";
  const which = overview.shown > all ? `${whole(all)} of ${plural(overview.shown, "query")}, the worst estimated losses and the largest gains${rest}. ` : "";
  table.replaceChildren(
    make("p", { class: "caption" }, `${which}Change in ${outcome}: that of all logged sessions of a query, if they saw the model’s list, with the 95 % interval of clicks and examination. ` +
      (overview.users ? `Under users of the click model ${overview.users}, which explains this log best.` : "It cannot be estimated: too few clicks.")),
    radios,
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of queries" }, make("table", { class: "compact queries" },
      make("thead", {}, make("tr", {}, ["query", "sessions", `change in ${outcome}`, "relative", "moved"].map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, rows.slice(0, limit).map(rowOf)))),
    rows.length ? "" : make("p", { class: "caption" }, `No query contains “${search.value.trim()}”${live ? "; press Enter to look for a query of exactly this name" : ""}.`),
    rows.length > limit ? make("button", { class: "more", type: "button", on: { click: () => { limit += 4 * ROWS; showTable(); } } }, `Show more (${whole(rows.length - limit)} left)`) : "",
  );
}
function rowOf(row) {
  const known = row.change !== null, kind = !known ? "" : row.high < 0 ? "loss" : row.low > 0 ? "gain" : "";
  return make("tr", {},
    make("th", { scope: "row" }, make("button", { class: "open", type: "button", on: { click: () => go(row.query_id) } }, row.query_id)),
    make("td", {}, whole(row.sessions)),
    make("td", { class: kind }, known ? [make("span", { class: "number" }, signed(row.change)), make("span", { class: "between" }, `${signed(row.low)} to ${signed(row.high)}`)] : "–"),
    make("td", {}, known && row.baseline > 0 ? percent(row.change / row.baseline) : "–"),
    make("td", {}, whole(row.moved)));
}
function examination() {
  const curves = overview.examination.curves, shown = curves.length > 1 ? curves.slice(1) : curves;
  const size = { width: 520, height: 240, left: 40, right: 10, top: 10, bottom: 38 }, number = curves[0].positions.length;
  const colours = ["#4f7fc2", "#b3702f", "#4f9468", "#a5608e", "#8577c2", "#94853a"];
  const highest = Math.min(3, Math.max(1, ...shown.flatMap((curve) => curve.positions.map((at) => (at ? Math.min(at.high, 2 * at.value + 1) : 0)))));
  const x = (k, shift) => size.left + (k + 0.5 + shift) * (size.width - size.left - size.right) / number;
  const y = (value) => size.height - size.bottom - Math.min(value, highest) / highest * (size.height - size.top - size.bottom);
  const svg = draw("svg", { viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": "Examination by position" });
  for (const tick of [0, 0.25, 0.5, 0.75, 1].map((share) => share * highest)) {
    svg.append(draw("line", { class: "grid", x1: size.left, x2: size.width - size.right, y1: y(tick), y2: y(tick) }),
      draw("text", { x: size.left - 6, y: y(tick) + 4, "text-anchor": "end" }, fixed(tick, 2)));
  }
  const step = Math.ceil(number / 12);
  for (let k = 0; k < number; k += step) svg.append(draw("text", { x: x(k, 0), y: size.height - size.bottom + 16, "text-anchor": "middle" }, String(k + 1)));
  svg.append(draw("text", { x: (size.left + size.width) / 2, y: size.height - 4, "text-anchor": "middle" }, "position"));
  shown.forEach((curve, i) => {
    const colour = colours[i % colours.length], shift = 0.14 * (i - (shown.length - 1) / 2);
    const known = curve.positions.map((at, k) => ({ at, k })).filter(({ at }) => at);
    svg.append(draw("polyline", { fill: "none", stroke: colour, "stroke-width": 2, points: known.map(({ at, k }) => `${x(k, shift)},${y(at.value)}`).join(" ") }));
    for (const { at, k } of known) {
      svg.append(draw("line", { stroke: colour, x1: x(k, shift), x2: x(k, shift), y1: y(at.low), y2: y(at.high) }),
        draw("circle", { fill: colour, r: 3.5, cx: x(k, shift), cy: y(at.value) },
          draw("title", {}, `position ${k + 1}: ${fixed(at.value, 3)} (${fixed(at.low, 3)} to ${fixed(at.high, 3)})`)));
    }
  });
  const caption = "How likely users examine a position where nothing above was clicked, relative to position 1, with 95 % intervals over queries."
    + (overview.examination.from_documents ? "" : " Estimated from features alone: the intervals do not cover the error of confounding.");
  const names = shown.length < 2 ? "" : make("ul", { class: "legend" }, shown.map((curve, i) =>
    make("li", {}, draw("svg", { class: "swatch", viewBox: "0 0 24 12", "aria-hidden": "true" }, draw("path", { d: "M1 6h22", stroke: colours[i % colours.length], "stroke-width": 3 })), curve.level)));
  return make("figure", { class: "plot" }, make("figcaption", {}, make("p", {}, caption)), names, make("div", { class: "panel curve" }, svg));
}

// A query.
let view = null, chosen = 0, compared = -1;
function name(found) { return found.title || found.document_id; }
function showQuery(found) {
  [view, chosen, compared] = [found, Math.max(0, found.documents.findIndex((one) => one.direction !== "same")), -1];
  const known = found.change !== null;
  const facts = {
    sessions: whole(found.sessions), "different lists": whole(found.lists),
    [`change in ${outcome}`]: known ? `${signed(found.change)} (${signed(found.interval[0])} to ${signed(found.interval[1])})` : "not estimated",
    [`expected ${outcome} now`]: known ? fixed(found.baseline, 1) : "–",
  };
  places.query.replaceChildren(
    make("a", { class: "back", href: "#" }, "← All queries"),
    make("h2", { tabindex: "-1" }, found.query_id),
    make("dl", { class: "facts" }, Object.entries(facts).map(([label, text]) => make("div", {}, make("dt", {}, label), make("dd", {}, text)))),
    make("div", { class: "lists" }, make("h3", { class: "from-head" }, "Production"), make("h3", { class: "to-head" }, "Model"), list("production"), lines(), list("model")),
    make("ul", { class: "key" }, make("li", {}, "solid line: clicks support the move"), make("li", {}, "dashed: too few impressions to justify it"), make("li", {}, "dotted: clicks contradict it")),
    found.lists > 1 ? make("p", { class: "caption" }, "Production: the documents that sessions show furthest up on average.") : "",
    make("section", { class: "detail", "aria-live": "polite", "aria-label": "Document" }),
  );
  choose(chosen);
}
function ranked(side) { return view.documents.map((found, i) => ({ found, i })).filter(({ found }) => found[side] !== null).sort((a, b) => a.found[side] - b.found[side]); }
function list(side) {
  return make("ol", { class: side === "model" ? "to" : "from", "aria-label": side === "model" ? "The model’s list" : "Production’s list" }, ranked(side).map(({ found, i }) =>
    make("li", {}, make("button", { class: "card", type: "button", "data-document": i, "data-side": side, "aria-pressed": "false", on: { click: () => choose(i) } },
      make("span", { class: "rank" }, String(found[side])),
      found.picture ? make("img", { src: found.picture, alt: "" }) : "",
      make("span", { class: "words" }, make("span", { title: name(found) }, name(found)),
        make("span", { class: "facts-line" }, found.impressions ? `shown ${whole(found.impressions)} · ${rateText(found.rate)}` : "never shown")),
      mark(found, side)))));
}
function rateText(rate) { return rate.rate === null ? "no rate" : `rate ${fixed(rate.rate, 2)}`; }
const SHORT = { supported: ["supported", "✓ supported"], contradicted: ["contradicted", "✗ contradicted"], "too few impressions": ["too-few", "? too few"], none: ["too-few", ""] };
function mark(found, side) {
  const moved = { up: `↑ ${found.production - found.model}`, down: `↓ ${found.model - found.production}`, in: "new", out: "left out", same: "=" }[found.direction];
  if (side === "production") return found.direction === "out" ? make("span", { class: "mark" }, make("span", { class: "out" }, moved)) : "";
  const [kind, text] = SHORT[found.justification];
  return make("span", { class: "mark" }, make("span", { class: found.direction }, moved), text ? make("span", { class: kind, title: minus(found.reason) }, text) : "");
}
function lines() {
  const rows = Math.max(...view.documents.map((found) => Math.max(found.production ?? 0, found.model ?? 0)), 1);
  const svg = draw("svg", { viewBox: `0 0 100 ${100 * rows}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  view.documents.forEach((found, i) => {
    const y = (rank) => 100 * rank - 50, kind = SHORT[found.justification][0];
    const from = found.production === null ? null : y(found.production), to = found.model === null ? null : y(found.model);
    const d = from === null ? `M66 ${to} H100` : to === null ? `M0 ${from} H34` : `M0 ${from} C50 ${from} 50 ${to} 100 ${to}`;
    svg.append(draw("path", { d, "data-document": i, class: `move-${found.direction} ${found.direction === "same" ? "" : kind}`, "vector-effect": "non-scaling-stroke" }));
  });
  svg.style.height = `calc(${rows} * var(--row))`;
  return svg;
}
function choose(i) {
  chosen = i;
  for (const card of places.query.querySelectorAll(".card")) card.setAttribute("aria-pressed", String(Number(card.dataset.document) === i));
  for (const line of places.query.querySelectorAll(".lists path")) {
    line.classList.toggle("chosen", Number(line.dataset.document) === i);
    line.classList.toggle("other", Number(line.dataset.document) !== i);
  }
  if (compared === i) compared = -1;
  const found = view.documents[i];
  if (found) places.query.querySelector(".detail").replaceChildren(...detail(found).filter((part) => part !== ""));
}
function detail(found) {
  const where = found.production === null ? `not in production’s list, ${found.model} in the model’s` : found.model === null
    ? `${found.production} in production’s list, not in the model’s` : `${found.production} in production’s list, ${found.model} in the model’s`;
  return [
    found.picture ? make("img", { src: found.picture, alt: "" }) : "",
    make("h3", {}, name(found)),
    make("p", { class: "caption" }, `${found.title ? `${found.document_id} · ` : ""}${where}`),
    found.reason ? make("p", { class: `reason ${SHORT[found.justification][0]}` }, minus(found.reason)) : "",
    make("div", { class: "columns" }, make("div", {}, evidence(found)), make("div", {}, features(found))),
  ];
}
function evidence(found) {
  const rate = found.rate, facts = { impressions: whole(found.impressions), clicks: fixed(found.clicks, Number.isInteger(found.clicks) ? 0 : 1) };
  if (found.reward !== null) facts.reward = fixed(found.reward, 2);
  facts["expected examinations"] = fixed(rate.examinations, 1);
  facts[`corrected ${outcome === "clicks" ? "click" : "reward"} rate`] = rate.rate === null ? "not known" : `${fixed(rate.rate, 3)} (${fixed(rate.low, 3)} to ${fixed(rate.high, 3)})`;
  const most = Math.max(1, ...found.positions.map(([, times]) => times));
  return [
    make("h4", {}, "What the log says"),
    make("dl", { class: "facts" }, Object.entries(facts).map(([label, text]) => make("div", {}, make("dt", {}, label), make("dd", {}, text)))),
    found.positions.length ? make("h4", {}, "Impressions by position") : "",
    make("dl", { class: "bars" }, found.positions.flatMap(([position, times]) => [make("dt", {}, String(position)), bar(0, times / most), make("dd", {}, whole(times))])),
  ];
}
function bar(from, to) {
  const fill = make("span", { class: to < from ? "fill minus" : "fill" });
  [fill.style.left, fill.style.width] = [`${100 * Math.min(from, to)}%`, `${100 * Math.abs(to - from)}%`];
  return make("dd", { class: "track", "aria-hidden": "true" }, fill);
}
function features(found) {
  if (found.score === null) return [make("h4", {}, "Features"), make("p", { class: "caption" }, "This model does not score documents one by one: its choice cannot be divided among features.")];
  const others = view.documents.map((other, i) => ({ other, i })).filter(({ other }) => other !== found);
  const select = make("select", { "aria-label": "Compare with", on: { change: (event) => { compared = Number(event.target.value); choose(chosen); places.query.querySelector(".detail select").focus(); } } },
    make("option", { value: "-1" }, "the mean of these documents"), others.map(({ other, i }) => make("option", { value: i, selected: i === compared }, name(other))));
  const against = compared < 0 ? null : view.documents[compared], minusOther = (get) => get(found) - (against ? get(against) : 0);
  const value = (number) => (number === null ? "missing" : fixed(number, Math.abs(number) >= 100 || Number.isInteger(number) ? 0 : 2));
  const parts = view.features.map((feature, j) => ({ feature, size: minusOther((one) => one.contributions[j]),
    values: value(found.values[j]) + (against ? ` against ${value(against.values[j])}` : "") }));
  parts.sort((a, b) => Math.abs(b.size) - Math.abs(a.size));
  const rest = { "all other features": minusOther((one) => one.other_features), "not explained by features": minusOther((one) => one.unexplained) };
  const score = minusOther((one) => one.score);
  for (const [feature, size] of Object.entries(rest)) if (Math.abs(size) > 0.005 * Math.max(Math.abs(score), 1e-9)) parts.push({ feature, size, values: "" });
  const most = Math.max(1e-12, ...parts.map((part) => Math.abs(part.size)));
  return [
    make("h4", {}, "Why the model puts it here"),
    make("p", { class: "caption" }, "Compared with ", select),
    make("p", { class: "caption" }, `Score ${signed(score, 3)}, the sum of:`),
    make("dl", { class: "bars features" }, parts.flatMap((part) => [make("dt", {}, part.feature, part.values ? make("small", {}, part.values) : ""), bar(0.5, 0.5 + part.size / most / 2), make("dd", {}, signed(part.size, 3))])),
    data.opaque.length ? make("p", { class: "caption" }, `Not explained: the members ${data.opaque.join(", ")}.`) : "",
  ];
}

// From place to place.
let last = null;
function go(id) { location.hash = `q=${encodeURIComponent(id)}`; }
function say(text) { message.textContent = text; message.hidden = !text; }
async function load(id) {
  if (!live) return Object.hasOwn(data.views, id) ? data.views[id] : { error: `“${id}” is not in this page.` };
  try {
    const answer = await fetch(`query?id=${encodeURIComponent(id)}`);
    return await answer.json();
  } catch {
    return { error: "The server does not answer. Is cuolr browse still running?" };
  }
}
async function show() {
  let id = null;
  if (location.hash.startsWith("#q=")) try { id = decodeURIComponent(location.hash.slice(3)); } catch { id = location.hash.slice(3); }
  const hash = location.hash, found = id === null ? null : await load(id);
  if (location.hash !== hash) return; // Another query was asked for in the meantime.
  say(found && found.error ? found.error : "");
  const open = found !== null && !found.error;
  [places.overview.hidden, places.query.hidden] = [open, !open];
  if (open) {
    showQuery(found);
    last = id;
    scrollTo(0, 0);
    if (document.activeElement !== search) places.query.querySelector("h2").focus({ preventScroll: true });
    return;
  }
  showTable();
  if (last !== null && id === null && document.activeElement !== search) {
    [...document.querySelectorAll(".open")].find((button) => button.textContent === last)?.focus();
  }
  last = null;
}
function step(items, by) {
  const at = items.indexOf(document.activeElement), next = items[Math.min(Math.max(at + by, 0), items.length - 1)];
  if (next) next.focus();
}
addEventListener("hashchange", show);
search.addEventListener("input", () => { limit = ROWS; if (places.query.hidden) { say(""); showTable(); } else location.hash = ""; });
document.querySelector(".search").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = search.value.trim(), rows = matching();
  if (!text) return;
  search.blur();
  if (overview.rows.some((row) => row.query_id === text)) return go(text);
  // A server also has queries that the table does not.
  const found = live ? await load(text) : { error: `No query contains “${text}”.` };
  if (!found.error) go(text);
  else if (rows.length) go(rows[0].query_id);
  else say(found.error);
});
addEventListener("keydown", (event) => {
  const typing = document.activeElement === search, card = document.activeElement.closest?.(".card");
  if (event.key === "/" && !typing) { event.preventDefault(); search.focus(); search.select(); }
  else if (event.key === "Escape") { if (typing && search.value) { search.value = ""; search.dispatchEvent(new Event("input")); } else if (!places.query.hidden) location.hash = ""; }
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const by = event.key === "ArrowDown" ? 1 : -1;
    if (places.query.hidden && (typing || document.activeElement.matches(".open"))) { event.preventDefault(); step([...document.querySelectorAll(".open")], by); }
    else if (card) { event.preventDefault(); step([...card.closest("ol").querySelectorAll(".card")], by); document.activeElement.click(); }
    else if (!places.query.hidden && document.activeElement.matches("h2, body")) { event.preventDefault(); places.query.querySelector(".to .card")?.focus(); }
  } else if (card && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
    places.query.querySelector(`${event.key === "ArrowLeft" ? ".from" : ".to"} .card[data-document="${card.dataset.document}"]`)?.focus();
  }
});
showOverview();
show();
