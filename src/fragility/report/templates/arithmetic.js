// What policies cost and how numbers are written. Nothing here touches the page.

const ROUNDING = 1e-12;

const sumOf = (numbers) => numbers.reduce((sum, x) => sum + x, 0);

/** Sums of the first 0, 1, 2, … numbers. */
function runningTotals(numbers) {
  const totals = new Float64Array(numbers.length + 1);
  for (let k = 0; k < numbers.length; k += 1) totals[k + 1] = totals[k] + numbers[k];
  return totals;
}

/** Numbers of the data: infinity came as text, what is undefined as null. */
export function asNumber(value) {
  return value === null || value === undefined ? NaN : Number(value);
}

/** All thresholds that pages offer; they came without the upper half, which mirrors the lower. */
function fullGrid(half) {
  return [...half, 0.5, ...half.slice(1).toReversed().map((edge) => 1 - edge), 1];
}

/** Amounts by side; several classes have one. */
function both(rows) {
  return rows.length === 2 ? rows : [rows[0], rows[0].map(() => 0)];
}

/**
 * The cases of a model by cells of the path that policies cut, with all that the page left out.
 * Before the lower cut a case is decided one way, from the upper cut on the other way.
 */
export function unpacked(cells, kind, half) {
  const several = kind === "several";
  const wrong = both(cells.wrong);
  const weight = cells.weight ?? wrong[0].map((x, k) => x + wrong[1][k]);
  const lost = both(cells.lost ?? wrong);
  const expected = cells.expected ? both(cells.expected) : lost;
  const units = several ? [weight, wrong[1]] : null; // what errors of reviewers count by
  const grid = several ? [] : fullGrid(half);
  const inner = several ? [] : [...cells.cuts.map((k) => grid[k]), ...cells.more].toSorted((a, b) => a - b);
  return {
    ...cells,
    cuts: several ? cells.cuts.map(Number) : [0, ...inner, Infinity],
    weight,
    wrong,
    lost,
    expected,
    slips: cells.slips ? both(cells.slips) : units ?? lost,
    expected_slips: cells.expected_slips ? both(cells.expected_slips) : units ?? expected,
    totals: { weight: runningTotals(weight), wrong: wrong.map(runningTotals) },
    n: weight.length,
    plain: !cells.lost && !cells.slips,
  };
}

/** What each cell costs: decided before the lower cut, reviewed, decided from the upper cut on. */
function cellCosts({ weight, n }, lost, slips, { miss, alarm, man, rev }) {
  const found = [new Float64Array(n), new Float64Array(n), new Float64Array(n)];
  for (let k = 0; k < n; k += 1) {
    found[0][k] = miss * lost[0][k];
    found[1][k] = man * weight[k] + rev * (miss * slips[0][k] + alarm * slips[1][k]);
    found[2][k] = alarm * lost[1][k];
  }
  return found;
}

/** Parts of the cost of all cases: cuts i and j cost left[i] + right[j]. */
function partsOf([before, reviewed, after]) {
  const [a, r] = [runningTotals(before), runningTotals(reviewed)];
  const b = runningTotals(after.toReversed()).toReversed();
  return { left: a.map((x, k) => x - r[k]), right: r.map((x, k) => x + b[k]) };
}

/** A model at some costs: what every pair of cuts costs, and what is to be chosen by. */
export function priced(cells, total, kind, costs) {
  const observed = cellCosts(cells, cells.lost, cells.slips, costs);
  const { blend } = cells;
  let chosen = observed;
  if (blend > 0) {
    const expected = cellCosts(cells, cells.expected, cells.expected_slips, costs);
    chosen = observed.map((part, side) => part.map((x, k) => (1 - blend) * x + blend * expected[side][k]));
  }
  const declined = cells.declined * costs.man + costs.rev * cells.declined_slips * costs.alarm;
  return {
    cells, total, kind, costs,
    observed: partsOf(observed),
    choosing: partsOf(chosen),
    rounding: ROUNDING * Math.max(...chosen.map(sumOf)),
    more: cells.base + declined,
  };
}

/** Cost of a case at cuts. */
export function costAt({ observed, more, total }, [i, j]) {
  return (observed.left[i] + observed.right[j] + more) / total;
}

/** Cases that are reviewed at cuts. */
export function reviewsAt({ cells }, [i, j]) {
  return cells.totals.weight[j] - cells.totals.weight[i] + cells.declined;
}

/** Cases that are decided alone, and those of them that are wrong: below, above. */
export function aloneAt(model, [i, j]) {
  const { wrong } = model.cells.totals;
  return {
    alone: model.total - reviewsAt(model, [i, j]),
    below: wrong[0][i],
    above: wrong[1].at(-1) - wrong[1][j],
  };
}

/** Whether cuts need no more reviews than humans can do. */
export function isWithin(model, cuts) {
  return reviewsAt(model, cuts) <= model.costs.cap * model.total * (1 + ROUNDING) + ROUNDING;
}

/** The largest lower cut that goes with an upper one. */
function lastLower({ kind, cells }, j) {
  return { answers: 0, several: cells.n, two: j }[kind];
}

/**
 * For every upper cut the least cost, and the first lower cut that the capacity allows with it.
 * Both ends of the range of lower cuts rise with the upper one: a queue holds the least in it.
 */
function leastCosts(model, most) {
  const { cells, choosing: { left, right }, kind } = model;
  const { weight } = cells.totals;
  const found = [];
  const queue = [];
  let [head, next, first] = [0, 0, 0];
  for (let j = kind === "several" ? cells.n : 0; j <= cells.n; j += 1) {
    const last = lastLower(model, j);
    for (; next <= last; next += 1) {
      while (queue.length > head && left[queue[queue.length - 1]] >= left[next]) queue.pop();
      queue.push(next);
    }
    while (first <= last && weight[j] - weight[first] > most) first += 1;
    while (head < queue.length && queue[head] < first) head += 1;
    if (head < queue.length) found.push({ j, first, last, cost: left[queue[head]] + right[j] });
  }
  return found;
}

/** All cases alike, or all reviewed: where scores say nothing. */
function alikeCuts({ cells: { n }, kind }) {
  return kind === "answers" ? [[0, n], [0, 0]] : [[0, n], [n, n], [0, 0]];
}

/**
 * The cheapest cuts; of equal ones those with the fewest reviews, then the lowest lower cut. If none
 * keeps the capacity, those with the fewest reviews.
 */
export function cheapestCuts(model) {
  const { cells, choosing: { left, right }, rounding, kind } = model;
  const { weight } = cells.totals;
  const most = model.costs.cap * model.total * (1 + ROUNDING) + ROUNDING - cells.declined;
  let pairs = [];
  if (cells.falling) {
    pairs = alikeCuts(model).filter(([i, j]) => weight[j] - weight[i] <= most);
  } else {
    const known = leastCosts(model, most);
    const limit = Math.min(...known.map(({ cost }) => cost)) + rounding;
    for (const { j, first, last, cost } of known) {
      if (cost > limit) continue;
      let i = last; // the last one that is cheap enough has the fewest reviews
      while (i > first && left[i] + right[j] > limit) i -= 1;
      pairs.push([i, j]);
    }
  }
  if (!pairs.length) return kind === "several" ? [cells.n, cells.n] : [0, 0];
  const costs = pairs.map(([i, j]) => left[i] + right[j]);
  const least = Math.min(...costs) + rounding;
  const reviews = ([i, j]) => weight[j] - weight[i];
  return pairs.filter((_, k) => costs[k] <= least).toSorted((a, b) => reviews(a) - reviews(b) || a[0] - b[0])[0];
}

/** Cuts that may take the place of one of two, the other staying where it is. */
export function movesOf({ kind, cells }, cuts, side) {
  if (side === 0) return [0, kind === "several" ? cells.n : cuts[1]];
  return [kind === "answers" ? 0 : cuts[0], cells.n];
}

/** What a case costs more, wrong and right, if it is decided on one side than if it is not. */
function regrets({ kind, costs: { miss, alarm, man, rev } }, cuts, side) {
  if (kind === "several") return [miss - man - rev * miss, -man - rev * miss];
  if (kind === "two" && cuts[0] === cuts[1]) return side === 0 ? [miss, -alarm] : [alarm, -miss]; // nobody reviews
  return side === 0 ? [miss - man - rev * miss, -man - rev * alarm] : [alarm - man - rev * alarm, -man - rev * miss];
}

/**
 * First and last place of a cut that these cases do not show to be dearer, the other cut staying;
 * without reviews both move. Null where errors do not all cost the same, or reviewers err unequally.
 */
export function sameCost(model, cuts, side, z) {
  const { cells, kind, total } = model;
  if (!cells.plain) return null;
  const [inError, right] = regrets(model, cuts, side);
  const together = kind === "two" && cuts[0] === cuts[1];
  const wrong = cells.wrong[side];
  const dearer = runningTotals(wrong.map((x, k) => x * inError + (cells.weight[k] - x) * right));
  const squares = runningTotals(wrong.map((x, k) => x * inError ** 2 + (cells.weight[k] - x) * right ** 2));
  const sign = side === 0 ? 1 : -1;
  const at = cuts[side];
  const [first, last] = together ? [0, cells.n] : movesOf(model, cuts, side);
  const places = [];
  for (let k = first; k <= last; k += 1) {
    const more = sign * (dearer[k] - dearer[at]);
    const error = z * Math.sqrt((Math.abs(squares[k] - squares[at]) * total) / cells.n_cases);
    const moved = side === 0 ? [k, cuts[1]] : [cuts[0], k];
    if (k === at || (more <= error + model.rounding && (together || isWithin(model, moved)))) places.push(k);
  }
  return [places[0], places.at(-1)];
}

/** Place of the cut at a threshold, or of the one nearest to it. */
export function placeOf(cuts, wanted) {
  const distances = cuts.map((value) => (value === wanted ? 0 : Math.abs(value - wanted)));
  return distances.indexOf(Math.min(...distances));
}

// --- numbers in words ---

function grouped(text) {
  const [whole, rest] = text.split(".");
  const spaced = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return (rest ? `${spaced}.${rest}` : spaced).replace("-", "−");
}

/** Digits of a number whose further ones are left out: a half goes to the even digit, as in Python. */
function halfEven(rounded, longer) {
  const [digits, power = ""] = longer.split("e");
  const kept = digits.slice(0, -20).replace(/\.$/, "");
  if (digits.slice(-20) !== `5${"0".repeat(19)}` || /[13579]$/.test(kept)) return rounded;
  return power ? `${kept}e${power}` : kept;
}

const fixed = (value, decimals) => halfEven(value.toFixed(decimals), value.toFixed(decimals + 20));

const exponential = (value, decimals) => halfEven(value.toExponential(decimals), value.toExponential(decimals + 20));

/** So many significant digits, without zeros at the end, as Python's "g" has them. */
export function general(value, digits) {
  const rounded = exponential(value, digits - 1);
  const [mantissa, power] = rounded.split("e").map(Number);
  if (power >= -4 && power < digits) return String(Number(rounded));
  return `${mantissa}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** A number with its decimals; infinity and undefined as such. */
export function number(value, decimals = 3) {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (value !== 0 && (size < 10 ** -(decimals + 1) || size >= 1e6)) {
    return value.toExponential(2).replace(/-/g, "−");
  }
  return grouped(size < 10 ? value.toFixed(decimals) : value.toFixed(size < 1000 ? 1 : 0));
}

/** An amount in a currency, rounded as people do: the words of the report. */
export function money(amount, currency) {
  const size = Math.abs(amount);
  let text = "0";
  if (size > 0) text = grouped(size >= 100 ? fixed(Number(exponential(amount, 3)), 0) : general(amount, 3));
  if (size > 0 && (size < 1e-3 || size >= 1e15)) text = exponential(amount, 2).replace(/e([+-])(\d)$/, "e$10$2").replace(/-/g, "−");
  if (!currency) return text;
  if ("$€£¥₹₩₺₽₿".includes(currency)) {
    return text.startsWith("−") ? `−${currency}${text.slice(1)}` : currency + text;
  }
  return `${text} ${currency}`;
}

/** So many cases; weights with a decimal or two, and those that are tiny or huge in powers of ten. */
export function count(value) {
  if (value >= 1e15 || (value > 0 && value < 0.01)) return value.toExponential(2).replace(/-/g, "−");
  return grouped(String(Number(value.toFixed(value < 100 ? 2 : 1))));
}

/** A share in per cent; a small one is not rounded to nothing, nor a large one to all. */
export function percent(share) {
  if (share === null || Number.isNaN(share)) return "–";
  if (share > 0 && share < 0.0005) return `${general(100 * share, 1)} %`;
  if (share >= 0.9995 && share < 1) return `${fixed(100 * Math.min(share, 0.99999), 3)} %`;
  return `${fixed(100 * share, 1)} %`;
}

/** A threshold of a score in per cent. */
export function threshold(value) {
  return `${general(100 * value, 4)} %`;
}

/** A name that fits, its middle left out if it is long. */
export function shortened(name, longest) {
  const letters = [...String(name)];
  if (letters.length <= longest) return letters.join("");
  const half = Math.floor(longest / 2);
  return `${letters.slice(0, half).join("")}…${letters.slice(1 - half).join("")}`;
}

/** Round values at even steps that span the range, about so many. */
function ticks(low, high, about = 5) {
  if (!(high > low)) return [low];
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const first = Math.ceil(low / step - ROUNDING);
  const last = Math.floor(high / step + ROUNDING);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

/** The same with their words: as many decimals as tell one from the next. */
export function toldTicks(low, high, about, unit = 1, sign = "") {
  const values = ticks(low * unit, high * unit, about);
  const step = values.length > 1 ? values[1] - values[0] : Math.abs(low * unit) || 1;
  const decimals = Math.max(Math.ceil(-Math.log10(step) - ROUNDING), 0);
  const long = decimals > 4 || Math.abs(high * unit) >= 1e7;
  return values.map((value) => {
    const shown = value + 0; // never minus zero
    const words = long && shown ? general(shown, 3).replace("-", "−") : grouped(shown.toFixed(long ? 0 : decimals));
    return [shown / unit, words + sign];
  });
}

/** A name that keeps its direction of writing to itself, for use within a sentence. */
export function isolated(name) {
  return `\u2068${name}\u2069`;
}

// What is entered: the name in the address, the least and the largest value.
export const FIELDS = { miss: [0, 1e12], alarm: [0, 1e12], err: [0, 1e12], man: [0, 1e12], cap: [0, 1], rev: [0, 1] };

/** Whether a number is one that the field can have. */
export function isAllowed(key, value, most = FIELDS[key][1]) {
  return Number.isFinite(value) && value >= FIELDS[key][0] && value <= most;
}

/** The view that the fragment of an address asks for; what makes no sense in it is left out. */
export function readFragment(fragment, nModels, mostOf) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const view = {};
  for (const key of Object.keys(FIELDS)) {
    const text = given.get(key)?.trim();
    if (text && isAllowed(key, Number(text), mostOf(key))) view[key] = Number(text);
  }
  const model = Number(given.get("m")) - 1;
  if (Number.isInteger(model) && model >= 0 && model < nModels) view.model = model;
  const cuts = ["lo", "up"].map((key) => given.get(key)?.trim());
  if (cuts.every((text) => text && !Number.isNaN(Number(text)))) view.thresholds = cuts.map(Number);
  return view;
}

/** The fragment that brings this view back. */
export function writeFragment(fields, model, thresholds) {
  const parts = { ...fields, m: model + 1 };
  if (thresholds) [parts.lo, parts.up] = thresholds;
  return `#${Object.entries(parts).map((part) => part.join("=")).join("&")}`;
}
