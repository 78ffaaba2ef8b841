// Charts as SVG. Each function gets numbers and a width and returns a drawing.

import { asNumber, isolated, number, percent, placeOf, shortened, threshold, ticks, toldTicks } from "./arithmetic.js";

const DASHES = ["", "8 4", "2 3", "10 3 2 3", "14 5", "1 5"];
const HEIGHT = 260;
const ROOM = { left: 52, right: 14, top: 14, bottom: 44 };

// Taken from the browser, so that the page holds no address of anything.
const SVG = document.createRange().createContextualFragment("<svg/>").firstChild.namespaceURI;

/** An SVG element with its attributes and children. */
function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function scale(low, high, from, to) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

function picture(width, height, label) {
  const box = { viewBox: `0 0 ${width} ${height}`, width, height };
  return draw("svg", { ...box, role: "img", "aria-label": label });
}

/** A marker whose shape tells models apart without colour. */
function marker(x, y, place, size = 5) {
  const shape = place % 4;
  const style = `mark s${place % 6}`;
  if (shape === 0) return draw("circle", { cx: x, cy: y, r: size, class: style });
  const corners = {
    1: [[-1, -1], [1, -1], [1, 1], [-1, 1]],
    2: [[0, -1.3], [1.2, 1], [-1.2, 1]],
    3: [[0, -1.4], [1.4, 0], [0, 1.4], [-1.4, 0]],
  }[shape];
  const points = corners.map(([dx, dy]) => `${x + size * dx},${y + size * dy}`).join(" ");
  return draw("polygon", { points, class: style });
}

/** A short piece of the line of a model, for the legend. */
export function swatch(place) {
  const svg = draw("svg", { width: 34, height: 14, "aria-hidden": "true" });
  svg.append(
    draw("path", { d: "M1 7H33", class: `line s${place % 6}`, "stroke-dasharray": dashes(place) }),
    marker(17, 7, place, 4),
  );
  return svg;
}

function dashes(place) {
  return DASHES[place % DASHES.length];
}

/** Axes with ticks, given as [value, words], and titles. */
function axes(svg, width, x, y, xTicks, yTicks, xTitle, yTitle) {
  const floor = HEIGHT - ROOM.bottom;
  for (const [value, words] of yTicks) {
    svg.append(
      draw("path", { d: `M${ROOM.left} ${y(value)}H${width - ROOM.right}`, class: "grid" }),
      draw("text", { x: ROOM.left - 6, y: y(value) + 4, class: "end" }, words),
    );
  }
  svg.append(draw("path", { d: `M${ROOM.left} ${floor}H${width - ROOM.right}`, class: "axis" }));
  let free = -Infinity;
  for (const [value, words] of xTicks) {
    const half = 3.5 * words.length;
    if (x(value) - half < free || x(value) + half > width) continue;
    free = x(value) + half + 6;
    svg.append(
      draw("path", { d: `M${x(value)} ${floor}v4`, class: "axis" }),
      draw("text", { x: x(value), y: floor + 17, class: "middle" }, words),
    );
  }
  const middle = (ROOM.left + width - ROOM.right) / 2;
  svg.append(
    draw("text", { x: middle, y: HEIGHT - 8, class: "middle title" }, xTitle),
    draw("text", { x: 4, y: 11, class: "title" }, yTitle),
  );
}

function pathThrough(xs, ys) {
  return xs.map((x, i) => `${i ? "L" : "M"}${x.toFixed(1)} ${ys[i].toFixed(1)}`).join("");
}

/** Outline of bars over their edges. */
function stairs(edges, heights, x, y) {
  const steps = heights.map((h, i) => `V${y(h).toFixed(1)}H${x(edges[i + 1]).toFixed(1)}`);
  return `M${x(edges[0]).toFixed(1)} ${y(0)}${steps.join("")}V${y(0)}`;
}

/** Cost over the threshold, a line for each model; `move` shows another threshold. */
export function costChart(width, grid, lines, label) {
  const svg = picture(width, HEIGHT, label);
  const x = scale(0, grid.length - 1, ROOM.left, width - ROOM.right);
  const most = Math.max(...lines.flatMap((line) => line.curve)) || 1;
  const y = scale(0, most, HEIGHT - ROOM.bottom, ROOM.top + 10);
  const wanted = [0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 0.9999, 1];
  const xTicks = wanted
    .filter((value) => value >= grid[0] && value <= grid.at(-1))
    .map((value) => [placeOf(grid, value), String(value)]);
  const yTicks = toldTicks(0, most, 4);
  axes(svg, width, x, y, xTicks, yTicks, "threshold δ (stretched towards 1)", "cost per case");
  for (const { curve, allowed, place, best } of lines) {
    const known = { class: `line s${place % 6}`, "stroke-dasharray": dashes(place) };
    const all = curve.map((_, i) => i);
    const within = all.filter((i) => allowed[i]);
    for (const [part, faint] of [[all, " faint"], [within, ""]]) {
      const d = pathThrough(part.map(x), part.map((i) => y(curve[i])));
      svg.append(draw("path", { ...known, d, class: known.class + faint }));
    }
    svg.append(marker(x(best), y(curve[best]), place, 6));
  }
  const rule = draw("path", { class: "now" });
  const dots = lines.map(({ place }) => draw("circle", { r: 3.5, class: `dot s${place % 6}` }));
  svg.append(rule, ...dots);
  const move = (at) => {
    rule.setAttribute("d", `M${x(at).toFixed(1)} ${ROOM.top}V${HEIGHT - ROOM.bottom}`);
    dots.forEach((dot, i) => {
      dot.setAttribute("cx", x(at));
      dot.setAttribute("cy", y(lines[i].curve[at]));
    });
  };
  const placeAt = (position) => {
    const share = (position - ROOM.left) / (width - ROOM.left - ROOM.right);
    return Math.min(Math.max(Math.round(share * (grid.length - 1)), 0), grid.length - 1);
  };
  return { svg, move, placeAt };
}

/** Confidence of right and of wrong predictions; `move` shows another threshold. */
export function confidenceChart(width, { edges, right, wrong }, most, label) {
  const svg = picture(width, HEIGHT, label);
  const x = scale(edges[0], 1, ROOM.left, width - ROOM.right);
  const y = scale(0, most, HEIGHT - ROOM.bottom, ROOM.top + 10);
  const xTicks = toldTicks(edges[0], 1, 5);
  const yTicks = ticks(0, most, 5).map((v) => [v, `${Math.round(100 * v)} %`]);
  axes(svg, width, x, y, xTicks, yTicks, "confidence", "share of right, of wrong");
  svg.append(
    draw("path", { d: stairs(edges, right, x, y), class: "area right" }),
    draw("path", { d: stairs(edges, wrong, x, y), class: "area wrong" }),
  );
  const rule = draw("path", { class: "now" });
  svg.append(rule);
  const move = (delta) => {
    const at = Math.max(x(delta), ROOM.left);
    rule.setAttribute("d", `M${at.toFixed(1)} ${ROOM.top}V${HEIGHT - ROOM.bottom}`);
  };
  return { svg, move };
}

/** How the ranking errors spread; those above 0 are the wrong ones. */
export function densityChart(width, { edges, density }, range, label) {
  const svg = picture(width, HEIGHT, label);
  const x = scale(range.low, range.high, ROOM.left, width - ROOM.right);
  // Wrong pairs are rare: roots of densities keep them in sight.
  const root = scale(0, Math.sqrt(range.most), HEIGHT - ROOM.bottom, ROOM.top + 10);
  const y = (value) => root(Math.sqrt(value));
  const xTicks = toldTicks(range.low, range.high, 5);
  const yTicks = ticks(0, Math.sqrt(range.most), 4).map((v) => [v * v, String(Number((v * v).toPrecision(3)))]);
  axes(svg, width, x, y, xTicks, yTicks, "ranking error", "density (square-root scale)");
  const split = edges.findIndex((edge) => edge >= -1e-9);
  const past = split < 0 ? density.length : Math.min(split, density.length);
  for (const [from, to, style] of [[0, past, "right"], [past, density.length, "wrong"]]) {
    if (from === to) continue;
    const d = stairs(edges.slice(from, to + 1), density.slice(from, to), x, y);
    svg.append(draw("path", { d, class: `area ${style}` }));
  }
  return { svg };
}

/** Share of errors of at least θ, and the bound exp(−θ / FI), on a logarithmic scale. */
export function tailChart(width, { theta, tail, fragility }, range, label) {
  const svg = picture(width, HEIGHT, label);
  const index = asNumber(fragility);
  const x = scale(0, range.reach, ROOM.left, width - ROOM.right);
  const log = scale(range.least, 0, HEIGHT - ROOM.bottom, ROOM.top + 10);
  const y = (share) => log(Math.max(Math.log10(share), range.least));
  const powers = ticks(range.least, 0, 4).filter(Number.isInteger);
  const yTicks = powers.map((p) => [10 ** p, p > -4 ? `${Number((100 * 10 ** p).toFixed(2))} %` : `1e${p}`]);
  const xTicks = toldTicks(0, range.reach, 4);
  axes(svg, width, x, y, xTicks, yTicks, "ranking error of at least θ", "share of pairs");
  const known = theta.map((_, i) => i).filter((i) => tail[i] > 0 && theta[i] >= 0);
  const d = pathThrough(known.map((i) => x(theta[i])), known.map((i) => y(tail[i])));
  svg.append(draw("path", { d, class: "line tail" }));
  if (index > 0) {
    const steps = Array.from({ length: 41 }, (_, i) => (range.reach * i) / 40);
    const bound = steps.filter((t) => -t / index / Math.LN10 >= range.least);
    const points = pathThrough(bound.map(x), bound.map((t) => y(Math.exp(-t / index))));
    svg.append(draw("path", { d: points, class: "line bound", "stroke-dasharray": "6 4" }));
  }
  return { svg };
}

/** The index of each model with its interval, as it is and calibrated. */
export function indexChart(width, rows, label) {
  const step = 56;
  const height = rows.length * step + 44;
  const svg = picture(width, height, label);
  const ends = rows.flatMap((row) => row.figures.flatMap(({ value, low, high }) => [value, low, high]));
  const most = (Math.max(...ends.filter(Number.isFinite), 0) || 1) * 1.08;
  const x = scale(0, most, 12, width - 30);
  for (const [value, words] of toldTicks(0, most, 5)) {
    svg.append(
      draw("path", { d: `M${x(value)} 4V${height - 38}`, class: "grid" }),
      draw("text", { x: x(value), y: height - 22, class: "middle" }, words),
    );
  }
  svg.append(draw("text", { x: width / 2, y: height - 5, class: "middle title" }, "Fragility Index"));
  rows.forEach((row, i) => {
    const name = shortened(row.name, Math.max(Math.floor(width / 9), 12));
    svg.append(draw("text", { x: 12, y: i * step + 16, class: "name" }, name));
    row.figures.forEach((figure, after) => {
      const y = i * step + 28 + 14 * after;
      if (Number.isNaN(figure.value)) return;
      if (!Number.isFinite(figure.value)) {
        svg.append(draw("text", { x: width - 14, y: y + 5, class: "middle" }, "∞"));
        return;
      }
      const end = Number.isFinite(figure.high) ? x(figure.high) : width - 8;
      if (!Number.isNaN(figure.low)) {
        svg.append(draw("path", { d: `M${x(figure.low)} ${y}H${end}`, class: `line ${after ? "after" : "before"}` }));
      }
      svg.append(draw("circle", { cx: x(figure.value), cy: y, r: 5, class: `${after ? "after" : "before"} spot` }));
    });
  });
  return { svg };
}

/** The index of every pair of classes, in stronger colour for more; `most` has the strongest. */
export function heatMap(width, pairs, labels, most, label) {
  const size = labels.length;
  const names = labels.map((name) => shortened(name, 10));
  const side = 14 + 6.5 * Math.max(...names.map((name) => name.length));
  const cell = Math.min((width - side - 8) / size, 64);
  const svg = picture(width, side + size * cell, label);
  names.forEach((name, i) => {
    if (cell < 12) return;
    const middle = side + (i + 0.5) * cell;
    const turned = `rotate(-40 ${middle - 4} ${side - 6})`;
    svg.append(
      draw("text", { x: side - 6, y: middle + 4, class: "end name" }, name),
      draw("text", { x: middle - 4, y: side - 6, transform: turned, class: "name" }, name),
    );
  });
  pairs.forEach((row, i) => row.forEach((entry, j) => {
    if (entry === null) return;
    const value = asNumber(entry);
    const share = Number.isFinite(value) ? Math.min(value / most, 1) : 1;
    const box = { x: side + j * cell, y: side + i * cell, width: cell - 1, height: cell - 1 };
    const shade = draw("rect", { ...box, class: "heat", "fill-opacity": 0.06 + 0.94 * share });
    shade.append(draw("title", {}, `scored as ${isolated(names[i])}, true ${isolated(names[j])}: ${number(value)}`));
    svg.append(shade);
    if (cell < 30) return;
    const words = { x: box.x + cell / 2, y: box.y + cell / 2 + 4 };
    const told = value < 0.005 ? "0" : number(value, 2);
    svg.append(draw("text", { ...words, class: "middle title" }, told));
  }));
  return { svg };
}

/** What a chart of costs says, in words. */
export function costWords(grid, lines) {
  const parts = lines.map(({ name, curve, best }) => `${name} is cheapest at δ ${threshold(grid[best])}, ${number(curve[best])} per case`);
  return `Cost per case over the threshold. ${parts.join("; ")}.`;
}

/** What a chart of confidences says, in words. */
export function confidenceWords({ edges, wrong, n_wrong: nWrong, n_right: nRight }) {
  const from = edges.findIndex((edge) => edge >= 0.9 - 1e-9); // bins of many classes have no edge at 0.9
  const sure = wrong.slice(from).reduce((sum, share) => sum + share, 0);
  return `Confidence of ${nRight} right and ${nWrong} wrong predictions; ${percent(sure)} of the wrong ones are above ${threshold(edges[from])}.`;
}
