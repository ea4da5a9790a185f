/** Arithmetic on the scores of labels that several modules need. */

/** @param {ArrayLike<number>} scores @returns {Float64Array} */
export function logSoftmax(scores) {
  let highest = -Infinity, sum = 0;
  for (let at = 0; at < scores.length; at++) highest = Math.max(highest, scores[at]);
  for (let at = 0; at < scores.length; at++) sum += Math.exp(scores[at] - highest);
  const log = Math.log(sum);
  return Float64Array.from(scores, (score) => score - highest - log);
}

/** The place of the highest value, the first of equals. @param {ArrayLike<number>} values */
export function highestPlace(values) {
  let best = 0;
  for (let at = 1; at < values.length; at++) if (values[at] > values[best]) best = at;
  return best;
}

/** All places, those of higher values first and equals in their order. @param {ArrayLike<number>} values @returns {number[]} */
export function ranked(values) {
  return Array.from(values, (_, at) => at).sort((a, b) => values[b] - values[a] || a - b);
}

/** How many sorted values are smaller. @param {ArrayLike<number>} sorted @param {number} value */
export function below(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** @param {Iterable<number>} values */
export function total(values) {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
}

/** A number with at most six decimals. @param {number} value */
export const six = (value) => Math.round(value * 1e6) / 1e6;
