// The live part of the page: one view, controls that change it, charts and tables that show it.

import {
  FIELDS, aloneAt, asNumber, cheapestCuts, costAt, count, general, isAllowed, isWithin, isolated, money, movesOf,
  percent, placeOf, priced, readFragment, reviewsAt, sameCost, shortened, threshold, toldTicks, unpacked, writeFragment,
} from "./arithmetic.js";
import { costChart, costWords, swatch } from "./charts.js";
import { coverageParts, figure, fill, groupParts, reliabilityParts, tailParts, widthOf } from "./folds.js";

const data = JSON.parse(document.getElementById("report-data").textContent);
const { kind, by, total, currency } = data;
const cellsOf = data.models.map(({ cells }) => unpacked(cells, kind, data.grid));
const byId = (id) => document.getElementById(id);
const rows = [...document.querySelectorAll("#models tr[data-model]")];
const names = rows.map((row) => shortened(row.querySelector("bdi").textContent, 40));
const sliders = [byId("lower"), byId("upper")];
const sides = sliders.map((slider, side) => side).filter((side) => sliders[side]);
const fields = Object.keys(FIELDS).filter((key) => byId(key));
const inPercent = (key) => key === "cap" || (key === "rev" && !data.costs.slip_factor);
const mostOf = (key) => (key === "rev" && data.costs.slip_factor ? 1e6 : FIELDS[key][1]);

const startOf = { ...data.costs, err: kind === "several" ? data.costs.miss : data.costs.alarm };
let view = { model: data.subject, moved: null };
let models = []; // each at the costs of the view
let own = []; // cuts of the policy of each, and those of equal cost: {cuts, same, within}

function say(target, words) {
  if (target && target.textContent !== words) target.textContent = words;
}

// --- what policies cost ---

function isEdited() {
  return fields.some((key) => view[key] !== startOf[key]);
}

/** Costs of the view: fields that the page does not have follow from those that it has. */
function costsOf() {
  const one = byId("err") ? view.err : null;
  return { miss: one ?? view.miss, alarm: one ?? view.alarm, man: view.man, rev: view.rev, cap: view.cap };
}

function findPolicies() {
  const edited = isEdited() || !data.costs.given;
  models = cellsOf.map((cells) => priced(cells, total, kind, costsOf()));
  own = models.map((model, place) => {
    const { start } = model.cells;
    if (start && !edited) {
      const same = data.models[place].same.map((ends) => ends.map((end) => placeOf(model.cells.cuts, asNumber(end))));
      return { cuts: start, same, within: data.models[place].within };
    }
    const cuts = cheapestCuts(model);
    return { cuts, same: [0, 1].map((side) => (sides.includes(side) ? sameCost(model, cuts, side, data.z) : null)), within: isWithin(model, cuts) };
  });
}

/** The cuts that the chosen model is shown at: its policy, or where a hand moved it. */
function cutsNow() {
  return view.moved ?? own[view.model].cuts;
}

/** Place of the cheapest model that keeps the capacity; before an edit that of new cases. */
function cheapest() {
  if (data.costs.given && !isEdited()) return data.cheapest;
  const costs = models.map((model, place) => (own[place].within ? costAt(model, own[place].cuts) : Infinity));
  const least = Math.min(...costs);
  return Number.isFinite(least) ? costs.indexOf(least) : null;
}

// --- words ---

// All but a loss is in per cent.
const told = (value) => (by === "loss" ? general(value, 4) : threshold(value));

/** An end of a range of thresholds: what is beyond all scores is reached always, or never. */
function endWords(value, side) {
  if (Number.isFinite(value)) return told(value);
  if (kind !== "several") return side === 0 ? "always" : "never";
  return value > 0 ? "all" : "none";
}

function rangeWords(model, same, side) {
  if (!same) return "not known at these costs";
  const [first, last] = same.map((place) => model.cells.cuts[place]);
  // Where both are beyond all scores, a word will do.
  if (kind !== "several" && first === last && [0, Infinity].includes(first)) {
    return (side === 0) === (first === 0) ? "never" : "always";
  }
  return `${endWords(first, side)} to ${endWords(last, side)}`;
}

/** What to do with a case, as the report says it. */
function instruction(model, [i, j]) {
  const { cuts, n } = model.cells;
  if (kind === "several") {
    if (i === 0) return "a human reviews every case";
    if (i === n) return "the model decides every case alone";
    const where = { loss: "its expected loss is at most", rest: "one minus its confidence is at most", confidence: "its confidence is above" }[by];
    return `the model decides alone where ${where} ${told(cuts[i])}, a human reviews the rest`;
  }
  if (kind === "answers") {
    if (j === 0) return "give every answer, without a review";
    return j === n ? "pass every case on, a human answers" : `answer alone from a confidence of ${told(cuts[j])} on, pass on the rest`;
  }
  const [negative, positive] = [1 - data.positive, data.positive].map((place) => isolated(data.labels[place]));
  if (i === j) {
    if (i === 0 || i === n) return `decide ${i === 0 ? positive : negative} in every case, without a review`;
    return `decide ${negative} below ${told(cuts[i])}, ${positive} from there on; no review`;
  }
  const parts = [];
  if (i > 0) parts.push(`${negative} below ${told(cuts[i])}`);
  if (j < n) parts.push(`${positive} from ${told(cuts[j])} on`);
  return parts.length ? `decide ${parts.join(", ")}, a human reviews the rest` : "a human reviews every case";
}

function thresholdWords(model, [i, j]) {
  const { cuts, n } = model.cells;
  const of = { several: [[i, "never", "always"]], answers: [[j, "always", "never"]] }[kind] ?? [[i, "never", "always"], [j, "always", "never"]];
  return of.map(([place, first, last]) => (place === 0 ? first : place === n ? last : told(cuts[place]))).join(" · ");
}

/** What a model does at cuts, in words. */
function figuresAt(model, cuts) {
  const { alone, below, above } = aloneAt(model, cuts);
  const wrong = below + above;
  const within = isWithin(model, cuts);
  return {
    cost: money(1000 * costAt(model, cuts), currency),
    alone: percent(alone / total),
    wrong: alone > 1e-12 * total ? percent(wrong / alone) : "–",
    reviews: count(reviewsAt(model, cuts)) + (within ? "" : " · over capacity"),
    within,
  };
}

function sentence() {
  const place = cheapest();
  if (place === null) return "At these costs no model keeps the capacity for reviews.";
  const model = models[place];
  const found = figuresAt(model, own[place].cuts);
  const lead = models.length > 1 ? `${isolated(names[place])} is cheapest` : isolated(names[place]);
  const where = data.costs.given && !isEdited() ? "At the costs of the report" : "At these costs";
  const wrong = found.wrong === "–" ? "" : `, ${found.wrong} of these wrong`;
  const alone = `${found.alone} ${kind === "answers" ? "answered" : "decided"} alone${wrong}`;
  return `${where}: ${lead}: ${instruction(model, own[place].cuts)}; on these cases ${found.cost} per 1,000, ${alone}, ${found.reviews} reviews.`;
}

// --- the card and the table of models ---

function writeModels() {
  const best = cheapest();
  rows.forEach((row, place) => {
    const found = figuresAt(models[place], own[place].cuts);
    const cells = { thresholds: thresholdWords(models[place], own[place].cuts), ...found };
    for (const cell of row.querySelectorAll("[data-cell]")) say(cell, cells[cell.dataset.cell]);
    row.querySelector('[data-cell="reviews"]').classList.toggle("over", !found.within);
    row.classList.toggle("best", place === best && models.length > 1);
    row.querySelector(".tag").hidden = !(place === best && models.length > 1);
  });
}

function writeCard() {
  const model = models[view.model];
  const cuts = cutsNow();
  const found = figuresAt(model, cuts);
  for (const target of document.querySelectorAll("[data-live]")) {
    say(target, found[target.dataset.live]);
    target.classList.toggle("over", target.dataset.live === "reviews" && !found.within);
  }
  for (const side of sides) {
    const words = thresholdWords(model, cuts).split(" · ")[sides.indexOf(side)];
    const slider = sliders[side];
    [slider.min, slider.max, slider.value] = [0, model.cells.n, cuts[side]].map(String);
    slider.setAttribute("aria-valuetext", words);
    say(byId(`${slider.id}-said`), words);
    say(byId(`${slider.id}-same`), rangeWords(model, own[view.model].same[side], side));
  }
  const [below, above] = [aloneAt(model, cuts).below, aloneAt(model, cuts).above];
  say(byId("kinds"), kind === "two" ? `${count(below)} missed, ${count(above)} false alarms` : "");
  byId("cheapest-cuts").disabled = view.moved === null;
  byId("report-costs").disabled = !isEdited();
  document.body.classList.toggle("edited", isEdited());
  writeConfusion(model, cuts);
}

/** Cases by class and decision, at the thresholds that are shown. */
function writeConfusion(model, [i, j]) {
  const table = byId("confusion");
  if (!table) return;
  const { wrong } = model.cells.totals; // below the lower cut positives are wrong, above the upper negatives
  const row = (sums) => [sums[i], sums[j] - sums[i], sums.at(-1) - sums[j]];
  const found = [row(wrong[1]), row(wrong[0])];
  [...table.tBodies[0].rows].forEach((line, place) => {
    [...line.cells].slice(1).forEach((cell, k) => say(cell, count(found[place][k])));
  });
  say(table.querySelector("caption span"), `${isolated(names[view.model])}: cases at the thresholds that are set above.`);
}

const costFigure = figure(byId("cost-chart"), "Numbers of the chart of costs", () => {
  const model = models[view.model];
  const cuts = cutsNow();
  const titles = { two: ["if the lower is moved there", "if the upper is"], several: ["cost of 1,000"], answers: ["cost of 1,000"] }[kind];
  return {
    head: ["threshold", ...titles],
    rows: model.cells.cuts.map((value, k) => [
      Number.isFinite(value) ? told(value) : "all",
      ...sides.map((side) => {
        const [first, last] = movesOf(model, cuts, side);
        return k < first || k > last ? "–" : money(1000 * costAt(model, side === 0 ? [k, cuts[1]] : [cuts[0], k]), currency);
      }),
    ]),
  };
});

function drawCosts() {
  const model = models[view.model];
  const cuts = cutsNow();
  const { cuts: values, n } = model.cells;
  const finite = values.filter(Number.isFinite);
  const ordered = [finite[kind === "several" ? 0 : 1] ?? finite[0], finite.at(-1)].toSorted((a, b) => a - b);
  const lines = sides.map((side) => {
    const [first, last] = movesOf(model, cuts, side);
    const points = [];
    for (let k = first; k <= last; k += 1) {
      const moved = side === 0 ? [k, cuts[1]] : [cuts[0], k];
      points.push([values[k], 1000 * costAt(model, moved), isWithin(model, moved)]);
    }
    const same = own[view.model].same[side]?.map((place) => values[place]).toSorted((a, b) => a - b);
    return { points, same, dash: side === 1 && sides.length > 1 ? "7 4" : "" };
  });
  const now = sides.filter((side) => cuts[side] > 0 && cuts[side] < n).map((side) => [values[cuts[side]], 1000 * costAt(model, cuts)]);
  const others = models
    .map((other, place) => ({ place, cost: 1000 * costAt(other, own[place].cuts) }))
    .filter(({ place }) => place !== view.model);
  const loss = by === "loss";
  const axis = {
    ticks: toldTicks(ordered[0], ordered[1], 5, loss ? 1 : 100, loss ? "" : " %"),
    title: { score: kind === "two" ? "threshold of the score" : "threshold of the confidence", loss: "limit of the expected loss", rest: "limit of one minus the confidence", confidence: "threshold of the confidence" }[by],
  };
  const label = costWords({ name: names[view.model], cost: costAt(model, cuts), alone: aloneAt(model, cuts).alone / total, currency });
  const drawing = { place: view.model, lines, range: ordered, others, now, told: { y: "cost of 1,000 cases" }, axis };
  costFigure.canvas.replaceChildren(costChart(widthOf(costFigure.canvas), drawing, label).svg);
  costFigure.refresh();
}

let later = 0;

/** What can wait until the hand rests: the spoken sentence and the address. */
function settle(keepAddress) {
  clearTimeout(later);
  later = setTimeout(() => {
    say(byId("now-said"), sentence());
    if (keepAddress) return;
    const values = Object.fromEntries(fields.map((key) => [key, view[key]]));
    const { cuts } = cellsOf[view.model];
    const thresholds = view.moved?.map((place) => cuts[place]);
    try {
      history.replaceState(null, "", writeFragment(values, view.model, thresholds));
    } catch {
      // Inside a frame there may be no address to change.
    }
  }, 150);
}

// --- charts of what costs do not change, drawn when their fold is opened ---

const FOLDS = { "coverage-charts": coverageParts, "tail-charts": tailParts, "reliability-charts": reliabilityParts, "group-charts": groupParts };

function drawFold(id) {
  const holder = byId(id);
  if (!holder?.closest("details").open) return;
  holder.replaceChildren();
  fill(holder, FOLDS[id](data, names, view.model));
}

function drawFolds() {
  for (const id of Object.keys(FOLDS)) drawFold(id);
}

// --- the view and what changes it ---

function showCuts() {
  writeCard();
  drawCosts();
}

function showCosts() {
  findPolicies();
  writeModels();
  showCuts();
}

/** Set the controls to the view, as after opening a shared address. */
function setControls() {
  for (const key of fields) {
    byId(key).value = String(inPercent(key) ? Number((100 * view[key]).toPrecision(12)) : view[key]);
    complain(key, "");
  }
  if (byId("model")) byId("model").value = String(view.model);
}

function complain(key, words) {
  byId(key).setAttribute("aria-invalid", String(Boolean(words)));
  say(byId(`${key}-problem`), words);
}

/** Move a cut; the other one gives way. */
function moveTo(side, place) {
  const cuts = [...cutsNow()];
  if (place === cuts[side]) return;
  cuts[side] = place;
  if (kind === "two") cuts[1 - side] = side === 0 ? Math.max(cuts[1], place) : Math.min(cuts[0], place);
  view.moved = cuts;
  showCuts();
  settle();
}

function takeNumber(key, input) {
  const entered = input.value.trim() === "" ? NaN : Number(input.value);
  const value = inPercent(key) ? entered / 100 : entered;
  if (!isAllowed(key, value, mostOf(key))) {
    complain(key, inPercent(key) ? "A number from 0 to 100; not used" : "A number, 0 or more; not used");
    return;
  }
  complain(key, "");
  view[key] = value;
  view.moved = null;
  showCosts();
  settle();
}

/** The view that the address asks for; what it does not say is as in the report. */
function readAddress() {
  const { thresholds, ...asked } = readFragment(location.hash, models.length || data.models.length, mostOf);
  view = { ...Object.fromEntries(fields.map((key) => [key, startOf[key]])), model: data.subject, moved: null };
  for (const [key, value] of Object.entries(asked)) if (key in view) view[key] = value;
  if (thresholds) {
    const [i, j] = thresholds.map((value) => placeOf(cellsOf[view.model].cuts, value));
    view.moved = kind === "two" ? [Math.min(i, j), j] : kind === "answers" ? [0, j] : [i, cellsOf[view.model].n];
  }
  setControls();
  showCosts();
  drawFolds();
  settle(true);
}

function choose(place) {
  view.model = place;
  view.moved = null;
  setControls();
  showCuts();
  drawFold("group-charts");
  settle();
}

byId("controls").addEventListener("submit", (event) => event.preventDefault());
for (const side of sides) sliders[side].addEventListener("input", () => moveTo(side, Number(sliders[side].value)));
for (const key of fields) byId(key).addEventListener("input", (event) => takeNumber(key, event.target));
byId("model")?.addEventListener("change", (event) => choose(Number(event.target.value)));
byId("cheapest-cuts").addEventListener("click", () => choose(view.model));
byId("report-costs").addEventListener("click", () => {
  for (const key of fields) view[key] = startOf[key];
  view.moved = null;
  setControls();
  showCosts();
  settle();
});
byId("to-costs").addEventListener("click", () => byId("deciding").scrollIntoView());
for (const id of Object.keys(FOLDS)) byId(id)?.closest("details").addEventListener("toggle", () => drawFold(id));
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.addEventListener("click", async () => {
    const lines = [...button.closest("section").querySelectorAll("table tr")].map((row) => [...row.cells].map((cell) => cell.textContent).join("\t"));
    try {
      await navigator.clipboard.writeText(lines.join("\n"));
      say(button.nextElementSibling, `${lines.length - 1} cases copied`);
    } catch {
      say(button.nextElementSibling, "The browser does not allow it: select the table instead");
    }
  });
}
for (const holder of document.querySelectorAll("[data-swatch]")) holder.append(swatch(Number(holder.dataset.swatch)));
addEventListener("hashchange", readAddress);
for (const part of document.querySelectorAll("[data-scripted]")) part.hidden = false;
for (const part of document.querySelectorAll(".unscripted")) part.hidden = true;
readAddress();

let widest = document.body.clientWidth;
addEventListener("resize", () => {
  if (document.body.clientWidth === widest) return; // a phone's bars come and go
  widest = document.body.clientWidth;
  drawCosts();
  drawFolds();
});
