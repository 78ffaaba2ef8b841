// The live part of the page: one view, controls that change it, charts and tables that show it.

import {
  FIELDS, allowedThresholds, asNumber, automation, bestPlace, chowThreshold, costCurve, count,
  errorRate, errorsAt, isAllowed, isolated, money, number, percent, placeBelow, readFragment, shortened,
  threshold, unpacked, writeFragment,
} from "./arithmetic.js";
import {
  confidenceChart, confidenceWords, costChart, costWords, densityChart, heatMap, indexChart, swatch,
  tailChart,
} from "./charts.js";

const data = JSON.parse(document.getElementById("report-data").textContent);
const { grid, total, labels } = data;
const models = data.models.map(({ raw, calibrated }) => ({
  raw: unpacked(raw, data.decimals),
  calibrated: unpacked(calibrated, data.decimals),
}));
// Answers are right or wrong, and none is taken for wrong.
const twoClasses = labels.length === 2 && !data.answers;
const byId = (id) => document.getElementById(id);
const names = models.map((_, i) => shortened(nameInPage(i), 40));
const slider = byId("delta");
const PERCENTAGES = ["cap", "rev"];

const start = {
  err: data.costs.error_cost,
  man: data.costs.review_cost,
  fn: twoClasses ? data.costs.false_negative_weight : 1,
  cap: data.costs.capacity ?? 1,
  rev: data.costs.reviewer_error,
  calibrated: false,
  off: [],
};
let view = { ...start, at: 0 };
let lines = []; // of the models that are shown: the cost at every threshold
let moving = []; // what to call with the place of the threshold when it moves

/** Names as the page shows them: short, nothing unseen in them. */
function nameInPage(i) {
  return document.querySelector(`#outcomes tr[data-model="${i}"] bdi`).textContent;
}

function versionOf(model) {
  return view.calibrated ? model.calibrated : model.raw;
}

/** The models that are shown and have figures, with their places. */
function shown() {
  return models
    .map((model, place) => ({ place, name: names[place], version: versionOf(model) }))
    .filter(({ place, version }) => version && !view.off.includes(place));
}

// --- tables and figures ---

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function tableOf({ head, rows }) {
  const rowOfCells = ([first, ...rest]) =>
    element("tr", {}, element("th", { scope: "row" }, first), ...rest.map((cell) => element("td", {}, cell)));
  return element(
    "table", {},
    element("thead", {}, element("tr", {}, ...head.map((cell) => element("th", { scope: "col" }, cell)))),
    element("tbody", {}, ...rows.map(rowOfCells)),
  );
}

/**
 * A figure with a caption, room for a chart, and the numbers behind it, made when asked for.
 * Draw into its canvas only when all figures of the holder are there: they share its width.
 */
function figure(holder, caption, table) {
  const canvas = element("div", { class: "canvas" });
  const label = `Numbers: ${caption}`;
  const scroll = element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label });
  const details = element("details", {}, element("summary", { "aria-label": label }, "Numbers"), scroll);
  const refresh = () => {
    if (details.open) scroll.replaceChildren(tableOf(table()));
  };
  details.addEventListener("toggle", refresh);
  holder.append(element("figure", {}, element("figcaption", {}, caption), canvas, details));
  return { canvas, refresh };
}

/** Draw a chart over the width that its figure has. */
function fill({ canvas }, chart, ...given) {
  canvas.append(chart(widthOf(canvas), ...given).svg);
}

function widthOf(canvas) {
  return Math.max(Math.floor(canvas.clientWidth), 240);
}

// --- what costs depend on ---

const costFigure = figure(byId("cost-chart"), "Cost per case at every threshold. Marks: best δ. Faint: more reviews than humans can do.", () => ({
  head: ["δ", ...lines.map((line) => line.name)],
  rows: grid.map((delta, i) => [threshold(delta), ...lines.map((line) => money(line.curve[i]))]),
}));
let costDrawing = null;

function findCosts() {
  lines = shown().map(({ place, name, version }) => {
    const { decisions } = version;
    const curve = costCurve(decisions, total, view);
    const allowed = allowedThresholds(decisions, total, view.cap);
    return { place, name, decisions, curve, allowed, best: bestPlace(curve, allowed) };
  });
}

function drawCosts() {
  costFigure.canvas.replaceChildren();
  costDrawing = null;
  if (lines.length) {
    costDrawing = costChart(widthOf(costFigure.canvas), grid, lines, costWords(grid, lines));
    costFigure.canvas.append(costDrawing.svg);
  }
  costFigure.refresh();
}

function rowOf(place) {
  return document.querySelector(`#outcomes tr[data-model="${place}"]`);
}

function write(place, cell, words, over = false) {
  const found = rowOf(place).querySelector(`[data-cell="${cell}"]`);
  if (found.textContent !== words) found.textContent = words;
  found.classList.toggle("over", over);
}

/** The part of the table that costs alone decide. */
function writeBest() {
  const chow = view.fn === 1 ? chowThreshold(view) : null;
  models.forEach((_, place) => {
    const line = lines.find((known) => known.place === place);
    rowOf(place).hidden = view.off.includes(place);
    rowOf(place).querySelector("button").disabled = !line;
    write(place, "best", line ? threshold(grid[line.best]) : "–");
    write(place, "best-cost", line ? money(line.curve[line.best]) : "–");
    const follows = line && chow !== null;
    const within = follows ? chowWithin(line, chow) : null;
    write(place, "chow", follows ? threshold(within.delta) : "–");
    write(place, "chow-cost", follows ? money(line.curve[within.at]) : "–");
  });
}

/** Chow's threshold, lowered to what humans can review, and its place. */
function chowWithin({ allowed }, chow) {
  const at = placeBelow(grid, chow);
  if (allowed[at]) return { at, delta: chow };
  const most = allowed.lastIndexOf(true);
  return { at: most, delta: grid[most] };
}

/** The part of the table that changes with the threshold. */
function writeOutcomes() {
  const { at } = view;
  models.forEach((_, place) => {
    const line = lines.find((known) => known.place === place);
    write(place, "cost", line ? money(line.curve[at]) : "not calibrated");
    write(place, "automation", line ? percent(automation(line.decisions, total, at)) : "–");
    write(place, "reviews", line ? count(line.decisions.reviewed[at]) + (line.allowed[at] ? "" : " · over capacity") : "–", Boolean(line) && !line.allowed[at]);
    const rate = line ? errorRate(line.decisions, total, at) : null;
    const { all, missed } = line ? errorsAt(line.decisions, at) : {};
    write(place, "errors", rate === null ? "–" : `${percent(rate)} · ${count(all)}`);
    if (twoClasses) write(place, "kinds", rate === null ? "–" : `${count(missed)}, ${count(all - missed)}`);
  });
  const delta = threshold(grid[at]);
  byId("delta-said").textContent = grid[at] === 0 ? "0 (decide all alone)" : delta;
  slider.value = String(at);
  slider.setAttribute("aria-valuetext", `δ ${delta}`);
}

function sentence() {
  if (!lines.length) return "No model is shown.";
  const { at } = view;
  const cheapest = lines.reduce((one, other) => (other.curve[at] < one.curve[at] ? other : one));
  const alone = percent(automation(cheapest.decisions, total, at));
  const lead = lines.length > 1 ? "Cheapest at" : "At";
  return `${lead} δ ${threshold(grid[at])}: ${isolated(cheapest.name)}, ${money(cheapest.curve[at])} per case, ${alone} decided alone.`;
}

let later = 0;

/** What can wait until the hand rests: the spoken sentence and the address. */
function settle(keepAddress) {
  clearTimeout(later);
  later = setTimeout(() => {
    byId("now-said").textContent = sentence();
    if (keepAddress) return;
    try {
      history.replaceState(null, "", writeFragment(view, grid));
    } catch {
      // Inside a frame there may be no address to change.
    }
  }, 150);
}

// --- charts of what costs do not change ---

const pairedFigures = (version) => {
  const found = version?.index;
  const [low, high] = (found?.interval ?? [null, null]).map(asNumber);
  return { value: asNumber(found?.value), low, high };
};

function told({ value, low, high }) {
  return Number.isNaN(low) ? number(value) : `${number(value)} (${number(low)} to ${number(high)})`;
}

function drawIndex() {
  const holder = byId("index-chart");
  const rows = models
    .map((model, i) => ({ place: i, name: names[i], figures: [model.raw, model.calibrated].map(pairedFigures) }))
    .filter(({ place }) => !view.off.includes(place));
  holder.replaceChildren();
  const place = figure(holder, "Fragility Index with intervals", () => ({
    head: ["model", "as it is", "calibrated"],
    rows: rows.map(({ name, figures }) => [name, ...figures.map(told)]),
  }));
  const key = element("p", { class: "hint" }, element("span", { class: "key before" }, "as it is"), element("span", { class: "key after" }, "calibrated"));
  key.hidden = !models.some((model) => model.calibrated);
  place.canvas.before(key);
  const words = rows.map(({ name, figures }) => `${name} ${figures.map(told).join(", calibrated ")}`).join("; ");
  fill(place, indexChart, rows, `Fragility Index. ${words}`);
}

function drawConfidence() {
  const holder = byId("confidence-charts");
  holder.replaceChildren();
  const parts = shown().filter(({ version }) => version.histogram);
  holder.parentElement.hidden = !parts.length;
  const most = Math.max(...parts.flatMap(({ version }) => [...version.histogram.right, ...version.histogram.wrong]), 0.01);
  const places = parts.map(({ name, version }) => {
    const { edges, right, wrong, n_right: nRight, n_wrong: nWrong } = version.histogram;
    const caption = `${isolated(name)}: ${nRight.toLocaleString("en")} right, ${nWrong.toLocaleString("en")} wrong`;
    return figure(holder, caption, () => ({
      head: ["confidence", "of right", "of wrong"],
      rows: right.map((share, i) => [`${number(edges[i])} to ${number(edges[i + 1])}`, percent(share), percent(wrong[i])]),
    }));
  });
  parts.forEach(({ name, version: { histogram } }, i) => {
    const words = `${name}. ${confidenceWords(histogram)}`;
    const drawing = confidenceChart(widthOf(places[i].canvas), histogram, most, words);
    places[i].canvas.append(drawing.svg);
    moving.push((at) => drawing.move(grid[at]));
  });
}

function drawRanking() {
  const holder = byId("ranking-charts");
  holder.replaceChildren();
  const parts = shown().filter(({ version }) => version.ranking);
  holder.parentElement.hidden = !parts.length;
  const all = parts.map(({ version }) => version.ranking);
  const tails = all.flatMap(({ tail }) => tail.filter((share) => share > 0));
  const range = {
    low: Math.min(...all.map(({ edges }) => edges[0])),
    high: Math.max(...all.map(({ edges }) => edges.at(-1))),
    most: Math.max(...all.flatMap(({ density }) => density)),
    reach: Math.max(...all.map(({ theta }) => theta.at(-1)), 0.01),
    least: Math.max(Math.min(Math.floor(Math.log10(Math.min(...tails, 1))), -1), -9),
  };
  const drawings = [];
  for (const { name, version } of parts) {
    const { ranking } = version;
    const { edges, density, theta, tail, fragility, auc, pair } = ranking;
    const [scored, truth] = (pair ?? []).map((label) => isolated(shortened(label, 20)));
    const of = isolated(name) + (pair ? `, true ${truth} scored as ${scored}` : "");
    const spread = figure(holder, `${of}: spread, AUC ${number(asNumber(auc))}`, () => ({
      head: ["ranking error", "density"],
      rows: density.map((height, i) => [`${number(edges[i])} to ${number(edges[i + 1])}`, number(height)]),
    }));
    const index = asNumber(fragility);
    const beyond = figure(holder, `${of}: tail, FI ${number(index)}`, () => ({
      head: ["θ", "share of at least θ", "bound"],
      rows: theta.map((t, i) => [number(t), percent(tail[i]), percent(Math.min(Math.exp(-t / index), 1))]),
    }));
    drawings.push(
      () => fill(spread, densityChart, ranking, range, `Density of the ranking errors of ${of}; AUC ${number(asNumber(auc))}.`),
      () => fill(beyond, tailChart, ranking, range, `Share of ranking errors of at least θ of ${of}, below the bound exp(−θ/FI) with FI ${number(index)}.`),
    );
  }
  for (const drawing of drawings) drawing();
}

function drawPairs() {
  const holder = byId("pair-charts");
  if (!holder) return;
  holder.replaceChildren();
  const parts = shown().filter(({ version }) => version.pairs);
  holder.parentElement.hidden = !parts.length;
  const finite = parts.flatMap(({ version }) => version.pairs.flat().map(asNumber).filter(Number.isFinite));
  const most = Math.max(...finite, 1e-9);
  const places = parts.map(({ name, version }) =>
    figure(holder, isolated(name), () => ({
      head: ["scored as \\ true", ...labels.map((label) => shortened(label, 20))],
      rows: version.pairs.map((cells, i) => [shortened(labels[i], 20), ...cells.map((cell) => number(asNumber(cell)))]),
    })),
  );
  parts.forEach(({ name, version: { pairs } }, i) => {
    const words = `${name}: index of every pair of classes, at most ${number(most)}; the numbers are in the table below.`;
    fill(places[i], heatMap, pairs, labels, most, words);
  });
}

// --- the view and what changes it ---

function showThreshold() {
  writeOutcomes();
  costDrawing?.move(view.at);
  for (const move of moving) move(view.at);
}

function showCosts() {
  findCosts();
  drawCosts();
  writeBest();
  showThreshold();
}

function showAll() {
  moving = [];
  drawIndex();
  drawConfidence();
  drawRanking();
  drawPairs();
  showCosts();
}

/** Set the controls to the view, as after opening a shared address. */
function setControls() {
  for (const key of Object.keys(FIELDS)) {
    const input = byId(key);
    if (!input) continue;
    input.value = String(PERCENTAGES.includes(key) ? Number((100 * view[key]).toPrecision(12)) : view[key]);
    complain(key, "");
  }
  for (const box of document.querySelectorAll('[name="model"]')) box.checked = !view.off.includes(Number(box.value));
  for (const radio of document.querySelectorAll('[name="calibrated"]')) radio.checked = view.calibrated === (radio.value === "1");
}

function complain(key, words) {
  byId(key).setAttribute("aria-invalid", String(Boolean(words)));
  byId(`${key}-problem`).textContent = words;
}

function moveTo(at) {
  if (at === view.at) return;
  view.at = at;
  showThreshold();
  settle();
}

function takeNumber(key, input) {
  const entered = input.value.trim() === "" ? NaN : Number(input.value);
  const value = PERCENTAGES.includes(key) ? entered / 100 : entered;
  if (!isAllowed(key, value)) {
    complain(key, PERCENTAGES.includes(key) ? "A number from 0 to 100" : "A number, 0 or more");
    return;
  }
  complain(key, "");
  view[key] = value;
  showCosts();
  settle();
}

/** The view that the address asks for; without a threshold in it, the best of the first model. */
function readAddress() {
  const asked = readFragment(location.hash, grid, models.length);
  view = { ...start, at: 0, ...asked };
  if (!models.some((model) => model.calibrated)) view.calibrated = false;
  if (!twoClasses) view.fn = 1;
  if (asked.at === undefined) {
    findCosts();
    view.at = lines[0]?.best ?? 0;
  }
  setControls();
  showAll();
  settle(true);
}

byId("controls").addEventListener("submit", (event) => event.preventDefault());
slider.addEventListener("input", () => moveTo(Number(slider.value)));
for (const key of Object.keys(FIELDS)) byId(key)?.addEventListener("input", (event) => takeNumber(key, event.target));
for (const control of document.querySelectorAll('[name="model"], [name="calibrated"]')) {
  control.addEventListener("change", () => {
    view.off = [...document.querySelectorAll('[name="model"]:not(:checked)')].map((box) => Number(box.value));
    view.calibrated = document.querySelector('[name="calibrated"]:checked')?.value === "1";
    showAll();
    settle();
  });
}
for (const button of document.querySelectorAll("#outcomes button")) {
  const place = Number(button.closest("tr").dataset.model);
  button.addEventListener("click", () => moveTo(lines.find((line) => line.place === place).best));
}
costFigure.canvas.classList.add("touch");
for (const kind of ["pointerdown", "pointermove"]) {
  costFigure.canvas.addEventListener(kind, (event) => {
    if (!costDrawing || !(event.buttons & 1)) return;
    moveTo(costDrawing.placeAt(event.clientX - costFigure.canvas.getBoundingClientRect().left));
  });
}
for (const holder of document.querySelectorAll("[data-swatch]")) holder.append(swatch(Number(holder.dataset.swatch)));
addEventListener("hashchange", readAddress);
byId("live").hidden = false;
document.querySelector(".unscripted").hidden = true;
for (const section of document.querySelectorAll("[data-drawn]")) section.hidden = false;
readAddress();

let widest = document.body.clientWidth;
addEventListener("resize", () => {
  if (document.body.clientWidth === widest) return; // a phone's bars come and go
  widest = document.body.clientWidth;
  showAll();
});
