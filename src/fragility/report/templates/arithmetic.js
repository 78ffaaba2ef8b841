// What a threshold costs and how numbers are written. Nothing here touches the page.

const ROUNDING = 1e-12;

/** What was written as differences, in units of the last decimal; of huge amounts that is before the point. */
function runningSums(differences, decimals) {
  let sum = 0;
  const sums = differences.map((step) => (sum += step));
  return sums.map(decimals < 0 ? (units) => units * 10 ** -decimals : (units) => units / 10 ** decimals);
}

/** Points at equal distances are written as the first and the last. */
function points(ends, n) {
  if (ends.length !== 2 || n === 2) return ends;
  const step = (ends[1] - ends[0]) / Math.max(n - 1, 1); // both ends of one point are that point
  return Array.from({ length: n }, (_, i) => ends[0] + step * i);
}

/** A model as it is, or calibrated, with all that the page left out to be small. */
export function unpacked(version, decimals) {
  if (version === null) return null;
  const { histogram, ranking } = version;
  const decisions = {};
  for (const [name, amounts] of Object.entries(version.decisions)) {
    decisions[name] = amounts && runningSums(amounts, decimals);
  }
  return {
    ...version,
    decisions,
    histogram: { ...histogram, edges: points(histogram.edges, histogram.right.length + 1) },
    ranking: ranking && {
      ...ranking,
      edges: points(ranking.edges, ranking.density.length + 1),
      theta: points(ranking.theta, ranking.tail.length),
    },
  };
}

/**
 * Cost per case at every threshold; reviewed and wrong cases are weights, `total` their sum.
 * Of two classes, an error on a case of the positive one counts `costs.fn` times, also a reviewer's.
 */
export function costCurve(decisions, total, costs) {
  const { reviewed, reviewed_positives: positives } = decisions;
  const more = costs.fn - 1;
  return reviewed.map((asked, i) => {
    const { all, missed } = errorsAt(decisions, i);
    const wrong = all + more * missed;
    const wrongReviews = costs.rev * (asked + (positives ? more * positives[i] : 0));
    return (costs.man * asked + costs.err * (wrong + wrongReviews)) / total;
  });
}

/** Errors that nobody looks at; of two classes how many cases of the positive one are missed. */
export function errorsAt({ errors, false_negatives: missed, false_positives: alarms }, i) {
  return missed ? { all: missed[i] + alarms[i], missed: missed[i] } : { all: errors[i], missed: 0 };
}

/** Which thresholds leave the humans no more than they can review. */
export function allowedThresholds(decisions, total, capacity) {
  return decisions.reviewed.map((asked) => asked / total <= capacity + ROUNDING);
}

/** Place of the smallest allowed threshold of least cost. */
export function bestPlace(curve, allowed) {
  const least = Math.min(...curve.filter((_, i) => allowed[i]));
  return curve.findIndex((cost, i) => allowed[i] && cost <= least + ROUNDING * Math.abs(least));
}

/** Chow's threshold: the best one if confidence can be taken at its word. */
export function chowThreshold(costs) {
  if (costs.err <= 0) return 0;
  return Math.min(Math.max(1 - costs.man / costs.err - costs.rev, 0), 1);
}

/** Place of the largest threshold of the grid that is not above the value, but for rounding. */
export function placeBelow(grid, value) {
  return Math.max(grid.findLastIndex((delta) => delta <= value + ROUNDING), 0);
}

/** Place of the threshold of the grid that is nearest to the value. */
export function nearestPlace(grid, value) {
  const below = placeBelow(grid, value);
  const above = Math.min(below + 1, grid.length - 1);
  return grid[above] - value < value - grid[below] ? above : below;
}

/** Where a value lies between the places of the grid. */
export function placeOf(grid, value) {
  const below = placeBelow(grid, value);
  const step = grid[below + 1] - grid[below];
  return below + (step > 0 ? Math.min(Math.max(value - grid[below], 0) / step, 1) : 0);
}

/** Share of the cases that the model decides alone. */
export function automation(decisions, total, i) {
  return 1 - decisions.reviewed[i] / total;
}

/** Share of wrong ones among them; null if there are none. */
export function errorRate(decisions, total, i) {
  const alone = total - decisions.reviewed[i];
  return alone > ROUNDING * total ? errorsAt(decisions, i).all / alone : null;
}

/** Numbers of the data: infinity came as text, what is undefined as null. */
export function asNumber(value) {
  return value === null || value === undefined ? NaN : Number(value);
}

function grouped(text) {
  const [whole, rest] = text.split(".");
  const spaced = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return (rest ? `${spaced}.${rest}` : spaced).replace("-", "−");
}

function exponential(value) {
  return value.toExponential(2).replace(/-/g, "−");
}

/** A number with its decimals; infinity and undefined as such. */
export function number(value, decimals = 3) {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (value !== 0 && (size < 10 ** -(decimals + 1) || size >= 1e6)) {
    return exponential(value);
  }
  return grouped(size < 10 ? value.toFixed(decimals) : value.toFixed(size < 1000 ? 1 : 0));
}

/** An amount per case: enough digits to tell thresholds apart. */
export function money(value) {
  if (!Number.isFinite(value)) return number(value);
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 0.001)) return exponential(value);
  return grouped(value.toFixed(size < 10 ? 4 : 2));
}

/** So many cases; weights with a decimal or two, and those that are tiny or huge in powers of ten. */
export function count(value) {
  if (value >= 1e15 || (value > 0 && value < 0.01)) return exponential(value);
  return grouped(String(Number(value.toFixed(value < 100 ? 2 : 1))));
}

/** A share in per cent; a small one is not rounded to nothing, nor a large one to all. */
export function percent(share) {
  if (share === null || Number.isNaN(share)) return "–";
  if (share > 0 && share < 0.0005) return `${Number((100 * share).toPrecision(2))} %`.replace("-", "−");
  if (share >= 0.9995 && share < 1) return `${(100 * Math.min(share, 0.99999)).toFixed(3)} %`;
  return `${grouped((100 * share).toFixed(1))} %`;
}

/** A threshold with as many digits as tell it from its neighbours. */
export function threshold(value) {
  const decimals = value === 1 ? 0 : Math.min(Math.max(3, Math.ceil(-Math.log10(1 - value)) + 2), 9);
  return String(Number(value.toFixed(decimals)));
}

/** A name that fits, its middle left out if it is long. */
export function shortened(name, longest) {
  const letters = [...String(name)];
  if (letters.length <= longest) return letters.join("");
  const half = Math.floor(longest / 2);
  return `${letters.slice(0, half).join("")}…${letters.slice(1 - half).join("")}`;
}

/** Round values that span the range, about so many. */
export function ticks(low, high, about = 5) {
  if (!(high > low)) return [low];
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const first = Math.ceil(low / step - ROUNDING);
  const last = Math.floor(high / step + ROUNDING);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

/** The same with their words: as many decimals as tell one from the next. */
export function toldTicks(low, high, about) {
  const values = ticks(low, high, about);
  const step = values.length > 1 ? values[1] - values[0] : Math.abs(low) || 1;
  const decimals = Math.max(Math.ceil(-Math.log10(step) - ROUNDING), 0);
  const tooLong = decimals > 4 || high >= 1e6;
  // Adding 0 makes the negative zero an ordinary one.
  return values.map((value) => [value + 0, tooLong && value ? exponential(value) : grouped((value + 0).toFixed(tooLong ? 0 : decimals))]);
}

/** A name that keeps its direction of writing to itself, for use within a sentence. */
export function isolated(name) {
  return `\u2068${name}\u2069`;
}

// What a view can be shared by: the name in the address, the least and the largest value.
export const FIELDS = { err: [0, 1e12], man: [0, 1e12], fn: [0, 1e6], cap: [0, 1], rev: [0, 1] };

/** Whether a number is one that the field can have. */
export function isAllowed(key, value) {
  return Number.isFinite(value) && value >= FIELDS[key][0] && value <= FIELDS[key][1];
}

/** The view that the fragment of an address asks for; what makes no sense in it is left out. */
export function readFragment(fragment, grid, nModels) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const view = {};
  for (const key of Object.keys(FIELDS)) {
    const text = given.get(key)?.trim();
    if (text && isAllowed(key, Number(text))) view[key] = Number(text);
  }
  const delta = given.get("d")?.trim();
  if (delta && Number(delta) >= 0 && Number(delta) <= 1) view.at = nearestPlace(grid, Number(delta));
  if (["0", "1"].includes(given.get("cal"))) view.calibrated = given.get("cal") === "1";
  const off = given.get("off")?.split(",").map((place) => Number(place) - 1);
  if (off) view.off = off.filter((i) => Number.isInteger(i) && i >= 0 && i < nModels);
  return view;
}

/** The fragment that brings this view back. */
export function writeFragment(view, grid) {
  const parts = { d: String(grid[view.at]) };
  for (const key of Object.keys(FIELDS)) parts[key] = String(view[key]);
  if (view.calibrated) parts.cal = "1";
  if (view.off.length) parts.off = view.off.map((i) => i + 1).join(",");
  return `#${Object.entries(parts).map((part) => part.join("=")).join("&")}`;
}
