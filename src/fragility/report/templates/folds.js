// What is folded: charts that costs do not change, each with its table and words.

import { asNumber, count, isolated, money, number, percent, toldTicks } from "./arithmetic.js";
import { groupChart, histogramChart, linesChart, reliabilityChart } from "./charts.js";

/** An element with its attributes and children. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function tableOf({ head, rows: lines }) {
  const rowOfCells = ([first, ...rest]) =>
    element("tr", {}, element("th", { scope: "row" }, first), ...rest.map((cell) => element("td", {}, cell)));
  return element(
    "table", {},
    element("thead", {}, element("tr", {}, ...head.map((cell) => element("th", { scope: "col" }, cell)))),
    element("tbody", {}, ...lines.map(rowOfCells)),
  );
}

/** Room for a chart, and the numbers behind it, made when asked for. */
export function figure(holder, caption, table) {
  const canvas = element("div", { class: "canvas" });
  const scroll = element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption });
  const details = element("details", { class: "numbers" }, element("summary", { "aria-label": caption }, "Numbers"), scroll);
  const refresh = () => {
    if (details.open) scroll.replaceChildren(tableOf(table()));
  };
  details.addEventListener("toggle", refresh);
  holder.append(element("figure", {}, canvas, details));
  return { canvas, details, refresh };
}

/** Width that a chart has. */
export function widthOf(canvas) {
  return Math.max(Math.floor(canvas.clientWidth), 240);
}

/** Figures of a fold: captions first, since they share the width, then drawings. */
export function fill(holder, parts) {
  const made = parts.map(({ caption, table }) => {
    const place = figure(holder, `Numbers: ${caption}`, table);
    place.canvas.before(element("figcaption", {}, caption));
    return place;
  });
  parts.forEach(({ chart }, i) => made[i].canvas.append(chart(widthOf(made[i].canvas)).svg));
}

const share = [0, 0.2, 0.4, 0.6, 0.8, 1].map((value) => [value, `${Math.round(100 * value)} %`]);

export function coverageParts({ models }, names) {
  const lines = models.map(({ coverage: [xs, ys] }, place) => ({ place, xs, ys }));
  const most = Math.max(...lines.flatMap(({ ys }) => ys), 0.01);
  const range = { xRange: [0, 1], yRange: [0, most], xTicks: share, yTicks: toldTicks(0, most, 4, 100, " %"), xTitle: "share of the surest cases", yTitle: "wrong of these" };
  const words = lines.map(({ place, ys }) => `${isolated(names[place])} ${percent(ys.at(-1))} of all`).join("; ");
  return [{
    caption: "Wrong predictions among the surest cases, as they are more and more",
    table: () => ({ head: ["model", "of the surest", "wrong"], rows: lines.flatMap(({ place, xs, ys }) => xs.map((x, i) => [names[place], percent(x), percent(ys[i])])) }),
    chart: (width) => linesChart(width, lines, range, `Share of wrong predictions among the surest cases. ${words}.`),
  }];
}

export function tailParts({ models }, names) {
  const lines = models
    .map(({ tail }, place) => ({ place, tail }))
    .filter(({ tail }) => tail)
    .map(({ place, tail }) => {
      const known = tail.theta.map((_, i) => i).filter((i) => tail.share[i] > 0 && tail.theta[i] >= 0);
      return { place, tail, xs: known.map((i) => tail.theta[i]), ys: known.map((i) => Math.log10(tail.share[i])) };
    })
    .filter(({ xs }) => xs.length);
  if (!lines.length) return [];
  const reach = Math.max(...lines.flatMap(({ xs }) => xs), 0.01);
  const least = Math.max(Math.min(...lines.flatMap(({ ys }) => ys), -1), -9);
  const powers = Array.from({ length: Math.floor(-least) + 1 }, (_, i) => -i);
  const range = {
    xRange: [0, reach], yRange: [least, 0], xTicks: toldTicks(0, reach, 5), xTitle: "ranking error of at least θ", yTitle: "share of pairs (powers of ten)",
    yTicks: powers.map((power) => [power, percent(10 ** power)]),
  };
  const clipped = lines.map((line) => ({ ...line, ys: line.ys.map((y) => Math.max(y, least)), ends: true }));
  const words = lines.map(({ place, tail }) => `${isolated(names[place])}: index ${number(asNumber(tail.fragility))}`).join("; ");
  return [{
    caption: "Tails of the ranking errors: the higher a line on the right, the worse",
    table: () => ({ head: ["model", "θ", "share of at least θ", "bound exp(−θ/FI)"], rows: lines.flatMap(({ place, tail }) => tail.theta.map((t, i) => [names[place], number(t), percent(tail.share[i]), percent(Math.min(Math.exp(-t / asNumber(tail.fragility)), 1))])) }),
    chart: (width) => linesChart(width, clipped, range, `Tails of the ranking errors. ${words}.`),
  }];
}

export function reliabilityParts({ models, kind }, names) {
  const all = models.flatMap(({ reliability }) => reliability.filter(Boolean));
  const range = [Math.min(...all.flatMap(([predicted, , lower]) => [...predicted, ...lower])), Math.max(...all.flatMap(([predicted, , , upper]) => [...predicted, ...upper]))];
  const axis = kind === "two" ? { x: "probability that the model gave", y: "share of positives" } : { x: "confidence", y: "share of right ones" };
  return models.flatMap(({ reliability, histogram }, place) => {
    const name = isolated(names[place]);
    const calibrated = reliability[1] ? "; hollow: calibrated" : "";
    const wrong = histogram.wrong.reduce((sum, n) => sum + n, 0);
    return [
      {
        caption: `${name}: said and observed${calibrated}`,
        table: () => ({
          head: ["", "said", "observed", "interval", "cases"],
          rows: reliability.flatMap((curve, after) => (curve ? curve[0].map((p, i) => [after ? "calibrated" : "as it is", percent(p), percent(curve[1][i]), `${percent(curve[2][i])} to ${percent(curve[3][i])}`, count(curve[4][i])]) : [])),
        }),
        chart: (width) => reliabilityChart(width, place, reliability, range, axis, `Reliability of ${name}: what it says against what is observed, in ${reliability[0][0].length} bins.`),
      },
      {
        caption: `${name}: cases by confidence; red: ${count(wrong)} wrong`,
        table: () => ({ head: ["confidence", "right", "wrong"], rows: histogram.right.map((n, i) => [`${percent(histogram.edges[i])} to ${percent(histogram.edges[i + 1])}`, count(n), count(histogram.wrong[i])]) }),
        chart: (width) => histogramChart(width, place, histogram, `Number of right and wrong predictions of ${name} by confidence; ${count(wrong)} are wrong.`),
      },
    ];
  });
}

export function groupParts({ models, groups, currency }, names, place) {
  const mine = groups.filter(({ model }) => model === place);
  if (!mine.length) return [];
  const { cost: all, error_rate: wrong } = models[place];
  const name = isolated(names[place]);
  const inMoney = (perCase) => money(1000 * perCase, currency);
  const table = () => ({
    head: ["group", "cases", "cost of 1,000", "decided alone", "wrong of these"],
    rows: mine.map((row) => [row.name, count(row.n), inMoney(row.cost[0]), percent(row.alone), percent(asNumber(row.wrong[0]))]),
  });
  const drawn = (key, factor) => mine
    .map((row) => ({ model: row.model, name: row.name, ends: row[key].map((value) => factor * asNumber(value)) }))
    .filter(({ ends }) => Number.isFinite(ends[0]));
  const about = "at the policy and costs of the report; the line is all cases";
  const parts = [{
    caption: `${name}: cost of 1,000 cases by group, ${about}`,
    table,
    chart: (width) => groupChart(width, drawn("cost", 1000), 1000 * all, { axis: "cost of 1,000 cases", sign: "" }, `Cost of 1,000 cases by group. The dearest is ${isolated(mine[0].name)}, ${inMoney(mine[0].cost[0])}; all cases ${inMoney(all)}.`),
  }];
  const shares = drawn("wrong", 100);
  if (shares.length && wrong !== null) {
    parts.push({
      caption: `${name}: wrong of the cases decided alone by group, ${about}`,
      table,
      chart: (width) => groupChart(width, shares, 100 * wrong, { axis: "wrong of these", sign: " %" }, `Wrong of the cases decided alone by group; of all ${percent(wrong)}.`),
    });
  }
  return parts;
}
