// Charts as SVG. Each function gets numbers and a width and returns a drawing.

import { isolated, money, percent, shortened, toldTicks } from "./arithmetic.js";

const ROOM = { left: 66, right: 24, top: 24, bottom: 42 };

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

/** The mark of a model: hue and shape tell it from the other five; hollow is calibrated. */
function marker(x, y, place, size = 5, hollow = false) {
  const style = `mark s${place % 6}${hollow ? " hollow" : ""}`;
  const shape = place % 6;
  if (shape === 0) return draw("circle", { cx: x, cy: y, r: size, class: style });
  const corners = {
    1: [[-1, -1], [1, -1], [1, 1], [-1, 1]],
    2: [[0, -1.3], [1.2, 1], [-1.2, 1]],
    3: [[0, -1.4], [1.4, 0], [0, 1.4], [-1.4, 0]],
    4: [[0, 1.3], [1.2, -1], [-1.2, -1]],
    5: [[-1.2, -0.4], [-0.4, -0.4], [-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4]],
  }[shape];
  const points = corners.map(([dx, dy]) => `${x + size * dx},${y + size * dy}`).join(" ");
  return draw("polygon", { points, class: style });
}

/** The mark of a model beside its name. */
export function swatch(place) {
  const svg = draw("svg", { width: 16, height: 16, "aria-hidden": "true" });
  svg.append(marker(8, 8, place, 5));
  return svg;
}

/** Axes with ticks, given as [value, words], and titles. */
function axes(svg, { width, height }, x, y, xTicks, yTicks, xTitle, yTitle) {
  const floor = height - ROOM.bottom;
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
    draw("text", { x: middle, y: height - 8, class: "middle title" }, xTitle),
    draw("text", { x: 4, y: 12, class: "title" }, yTitle),
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

/** Room of a plot and its scales. */
function plot(width, height, [left, right], [low, high]) {
  return {
    width,
    height,
    x: scale(left, right, ROOM.left, width - ROOM.right),
    y: scale(low, high, height - ROOM.bottom, ROOM.top),
  };
}

/**
 * Cost of one model as one of its thresholds moves and the other stays: a line for each of them,
 * [threshold, cost, within capacity]; `same` are thresholds of equal cost; `others` are what other
 * models cost at their own policies.
 */
export function costChart(width, { place, lines, range, others, now, told, axis }, label) {
  const height = 290;
  const svg = picture(width, height, label);
  const costs = [...lines.flatMap((line) => line.points.map(([, cost]) => cost)), ...others.map((other) => other.cost)];
  // Far above the best nothing is to be told apart.
  const least = Math.min(...now.map(([, cost]) => cost), ...costs);
  const seen = Math.max(4 * least, ...now.map(([, cost]) => 1.1 * cost), ...others.map((other) => 1.1 * other.cost));
  const most = Math.min(Math.max(...costs, 0), seen) || 1;
  const room = plot(width, height, range, [0, most * 1.05]);
  const { x, y } = room;
  for (const { same } of lines) {
    if (!same) continue;
    const [from, to] = same.map((value) => x(Math.min(Math.max(value, range[0]), range[1])));
    svg.append(draw("rect", { x: from, y: ROOM.top, width: Math.max(to - from, 2), height: height - ROOM.top - ROOM.bottom, class: "valley" }));
  }
  axes(svg, room, x, y, axis.ticks, toldTicks(0, most, 4), axis.title, told.y);
  // What is dearer than the chart is high is cut off.
  const inner = { x: 0, y: ROOM.top, width, height: height - ROOM.top - ROOM.bottom };
  const inside = draw("svg", { ...inner, viewBox: `0 ${inner.y} ${width} ${inner.height}`, overflow: "hidden" });
  svg.append(inside);
  for (const { points, dash } of lines) {
    for (const [part, faint] of [[points, " faint"], [points.filter(([, , within]) => within), ""]]) {
      const drawn = part.filter(([at]) => at >= range[0] && at <= range[1]);
      const d = pathThrough(drawn.map(([at]) => x(at)), drawn.map(([, cost]) => y(cost)));
      inside.append(draw("path", { d, class: `line s${place % 6}${faint}`, "stroke-dasharray": dash }));
    }
  }
  for (const other of others) svg.append(marker(width - ROOM.right - 4, y(other.cost), other.place, 4));
  for (const [at, cost] of now) {
    const here = x(Math.min(Math.max(at, range[0]), range[1]));
    inside.append(draw("path", { d: `M${here.toFixed(1)} ${ROOM.top}V${height - ROOM.bottom}`, class: "now" }));
    inside.append(marker(here, y(cost), place, 6));
  }
  return { svg };
}

/** Lines of all models: [x, y] arrays. */
export function linesChart(width, lines, { xRange, yRange, xTicks, yTicks, xTitle, yTitle }, label) {
  const height = 260;
  const svg = picture(width, height, label);
  const room = plot(width, height, xRange, yRange);
  const { x, y } = room;
  axes(svg, room, x, y, xTicks, yTicks, xTitle, yTitle);
  for (const { place, xs, ys, dash = "", hollow = false, marked = false, ends = true } of lines) {
    svg.append(draw("path", { d: pathThrough(xs.map(x), ys.map(y)), class: `line s${place % 6}`, "stroke-dasharray": dash }));
    const shown = marked ? xs.map((_, i) => i) : ends ? [xs.length - 1] : [];
    for (const i of shown) svg.append(marker(x(xs[i]), y(ys[i]), place, 4.5, hollow));
  }
  return { svg };
}

/** Predicted against observed frequency, with the number of cases of each bin below. */
export function reliabilityChart(width, place, curves, range, told, label) {
  const height = 290;
  const svg = picture(width, height, label);
  const room = plot(width, height, range, range);
  const { x, y } = room;
  const marks = toldTicks(range[0], range[1], 5, 100, " %");
  axes(svg, room, x, y, marks, marks, told.x, told.y);
  svg.append(draw("path", { d: `M${x(range[0])} ${y(range[0])}L${x(range[1])} ${y(range[1])}`, class: "axis", "stroke-dasharray": "4 3" }));
  curves.forEach((curve, after) => {
    if (!curve) return;
    const [predicted, observed, lower, upper] = curve;
    predicted.forEach((p, i) => {
      if (!after) svg.append(draw("path", { d: `M${x(p)} ${y(lower[i])}V${y(upper[i])}`, class: `line thin s${place % 6}` }));
    });
    const d = pathThrough(predicted.map(x), observed.map(y));
    svg.append(draw("path", { d, class: `line s${place % 6}`, "stroke-dasharray": after ? "3 3" : "" }));
    predicted.forEach((p, i) => svg.append(marker(x(p), y(observed[i]), place, 4.5, Boolean(after))));
  });
  return { svg };
}

/** Number of right and of wrong predictions by confidence; wrong ones are red. */
export function histogramChart(width, place, { edges, right, wrong }, label) {
  const height = 220;
  const svg = picture(width, height, label);
  const held = right.map((n, i) => n + wrong[i] > 0);
  const first = Math.max(held.indexOf(true), 0);
  const most = Math.max(...right, ...wrong, 1);
  const room = plot(width, height, [edges[first], edges.at(-1)], [0, most]);
  const { x, y } = room;
  axes(svg, room, x, y, toldTicks(edges[first], edges.at(-1), 5, 100, " %"), toldTicks(0, most, 4), "confidence", "cases");
  const shown = [edges.slice(first), right.slice(first), wrong.slice(first)];
  svg.append(
    draw("path", { d: stairs(shown[0], shown[1], x, y), class: `area s${place % 6}` }),
    draw("path", { d: stairs(shown[0], shown[2], x, y), class: "area wrong" }),
  );
  return { svg };
}

/** A figure of groups, [value, low, high], in the order given; the line is that of all cases. */
export function groupChart(width, rows, all, { axis, sign }, label) {
  const step = 24;
  const height = rows.length * step + 44;
  const svg = picture(width, height, label);
  const side = Math.min(0.35 * width, 14 + 7 * Math.max(...rows.map((row) => row.name.length)));
  const most = Math.max(...rows.flatMap((row) => row.ends.filter(Number.isFinite)), all, 0) * 1.05 || 1;
  const x = scale(0, most, side, width - 24);
  for (const [value, words] of toldTicks(0, most, 5, 1, sign)) {
    svg.append(
      draw("path", { d: `M${x(value)} 6V${height - 36}`, class: "grid" }),
      draw("text", { x: x(value), y: height - 20, class: "middle" }, words),
    );
  }
  svg.append(
    draw("path", { d: `M${x(all)} 6V${height - 36}`, class: "now" }),
    draw("text", { x: (side + width) / 2, y: height - 5, class: "middle title" }, axis),
  );
  rows.forEach(({ name, model, ends: [value, low, high] }, i) => {
    const y = i * step + 20;
    svg.append(draw("text", { x: side - 8, y: y + 4, class: "end name" }, shortened(name, Math.floor(side / 7))));
    if (low !== undefined) {
      svg.append(draw("path", { d: `M${x(low)} ${y}H${Math.min(x(high), width - 6)}`, class: `line s${model % 6}` }));
    }
    svg.append(marker(x(value), y, model, 5));
  });
  return { svg };
}

/** What a chart of costs says, in words. */
export function costWords({ name, cost, alone, currency }) {
  return `Cost of 1,000 cases of ${isolated(name)} as each threshold moves; now ${money(1000 * cost, currency)}, ${percent(alone)} decided alone.`;
}
