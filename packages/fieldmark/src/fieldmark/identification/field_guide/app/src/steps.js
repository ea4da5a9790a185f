/**
 * What comes after the network: temperature, bias, priors, the line to unknown. Each step changes the scores of one
 * specimen as the step of the same name in `fieldmark.steps` does.
 */

import { levelsOf } from "./contexts.js";
import { highestPlace, logSoftmax } from "./scores.js";

/** @typedef {import("./contexts.js").Known} Known */
/** @typedef {import("./contexts.js").Countries} Countries */
/**
 * @typedef {object} Said
 * @property {Float64Array} columns One score per label; that of unknown last, where it competes with them.
 * @property {number} labels How many labels there are.
 * @property {"logit"|"log_probability"|"score"} scale
 * @property {number|null} unknown How strange the specimen looks.
 * @property {number|null} decision What a rule decided for: a code, -1 for unknown, null where none did.
 */
/** @typedef {(step: any, said: Said, known: Known, countries: Countries) => Said} Step */

/** @param {Said} said @param {ArrayLike<number>} scores @returns {Said} */
const normalized = (said, scores) => ({ ...said, columns: logSoftmax(scores), scale: "log_probability", decision: null });

/** @param {Said} said */
const probabilities = (said) => logSoftmax(said.columns).map(Math.exp);

/** @type {Step} */
const temperature = (step, said) => normalized(said, said.columns.map((score) => score / step.temperature));

/** @type {Step} */
const biasTemperature = (step, said) =>
  normalized(said, said.columns.map((score, code) => score / step.temperature + (step.biases[code] ?? 0)));

/** @type {Step} */
function groupTemperature(step, said, known) {
  const value = step.column === "month" ? known.date?.slice(5, 7) : /** @type {any} */ (known)[step.column];
  return temperature({ temperature: step.temperatures[value ?? ""] ?? step.temperature }, said, known, null);
}

/** @type {Record<string, (logits: Float64Array) => number>} */
const STRANGENESS = {
  "max-softmax"(logits) {
    const best = highestPlace(logits);
    const beside = logits.reduce((sum, one, code) => (code === best ? sum : sum + Math.exp(one - logits[best])), 0);
    return beside / (1 + beside);
  },
  "max-logit": (logits) => -logits[highestPlace(logits)],
  energy(logits) {
    const highest = logits[highestPlace(logits)];
    return -(highest + Math.log(logits.reduce((sum, one) => sum + Math.exp(one - highest), 0)));
  },
  entropy(logits) {
    const energy = STRANGENESS.energy(logits);
    return -logits.reduce((sum, one) => sum + Math.exp(one + energy) * Math.max(one + energy, -700), 0);
  },
};

/** @type {Step} */
function unknownScore(step, said) {
  let logits = said.columns.slice(0, said.labels);
  if (said.scale === "log_probability" && ["max-logit", "energy"].includes(step.score)) {
    const mean = logits.reduce((sum, one) => sum + one, 0) / logits.length;
    logits = logits.map((one) => one - mean);
  }
  return { ...said, unknown: STRANGENESS[step.score](logits) };
}

/** @type {Step} */
function unknownProbability(step, said) {
  if (step.offset === null) return said;
  const odds = step.slope * (said.unknown ?? 0) + step.offset;
  const strange = Math.min(Math.max(1 / (1 + Math.exp(-odds)), 1e-9), 1 - 1e-9);
  const known = logSoftmax(said.columns.slice(0, said.labels)).map((one) => one + Math.log(1 - strange));
  return { ...said, columns: Float64Array.from([...known, Math.log(strange)]), scale: "log_probability", decision: null };
}

/** @type {Step} */
function unknownThreshold(step, said) {
  const best = highestPlace(said.columns.subarray(0, said.labels));
  const strange = step.threshold !== null && (said.unknown ?? 0) > step.threshold;
  return { ...said, decision: strange ? -1 : best };
}

/** @type {Step} */
function minCost(step, said) {
  const { kind, wrong, right } = step.costs;
  const chances = [...probabilities(said)];
  while (chances.length < kind.length) chances.push(0);
  const together = wrong.map((/** @type {number[]} */ _, /** @type {number} */ own) =>
    chances.reduce((sum, chance, code) => (kind[code] === own ? sum + chance : sum), 0));
  const byKind = wrong.map((/** @type {number[]} */ _, /** @type {number} */ own) =>
    together.reduce((/** @type {number} */ sum, /** @type {number} */ share, /** @type {number} */ of) => sum + share * wrong[of][own], 0));
  const cost = chances.map((chance, code) => byKind[kind[code]] + chance * (right[kind[code]] - wrong[kind[code]][kind[code]]));
  const dearest = Math.max(...wrong.flat().map(Math.abs), ...right.map(Math.abs));
  const least = Math.min(...cost) + 1e-9 * dearest;
  const best = highestPlace(chances.map((chance, code) => (cost[code] <= least ? chance : -1)));
  return { ...said, decision: best < said.labels ? best : -1 };
}

/**
 * What a source adds to the log-probability of each label.
 * @param {any} source
 * @param {string} rule
 * @param {number} labels
 * @param {Known} known
 * @param {Countries} countries
 */
function shift(source, rule, labels, known, countries) {
  const levels = levelsOf(source.context, known, countries);
  const logs = new Float64Array(labels);
  if (source.kind === "counts") {
    const used = source.back_off === "continent" ? levels : levels.slice(-1);
    let found = -1, first = 0;
    used.forEach((value, level) => {
      const row = value === null ? -1 : source.groups[level].indexOf(value);
      if (row >= 0) found = first + row;
      first += source.groups[level].length;
    });
    if (found >= 0) logs.set(source.log_ratios.subarray(found * labels, (found + 1) * labels));
    return rule === "product" ? logs.map((one, code) => one + source.log_prior[code]) : logs;
  }
  const narrow = levels.at(-1) ?? null;
  const names = [narrow];
  if (levels.length > 1 && source.back_off === "continent") names.push(levels.at(-2) ? source.continent_prefix + levels.at(-2) : null);
  const row = names.map((name) => (name === null ? -1 : source.places.indexOf(name))).find((one) => one >= 0);
  if (row !== undefined) {
    for (let code = 0; code < labels; code++) {
      if (source.listed[code] && !source.present[row * labels + code]) logs[code] = Math.log(source.floor);
    }
  }
  const mean = Math.log(logs.reduce((sum, one) => sum + Math.exp(one), 0) / labels);
  return logs.map((one) => one - mean - (rule === "product" ? Math.log(labels) : 0));
}

/** @type {Step} */
function prior(step, said, known, countries) {
  if (!step.exponents.some(Boolean)) return said;
  const columns = logSoftmax(said.columns);
  step.sources.forEach((/** @type {any} */ source, /** @type {number} */ number) => {
    const added = shift(source, step.rule, said.labels, known, countries);
    for (let code = 0; code < said.labels; code++) columns[code] += step.exponents[number] * added[code];
    if (columns.length > said.labels && step.rule === "product") columns[said.labels] -= step.exponents[number] * Math.log(said.labels);
  });
  return normalized(said, columns);
}

/** @type {Step} */
const pooledBefore = (_step, said) => normalized(said, said.columns);

/** @type {Record<string, Step>} */
const STEPS = {
  temperature,
  "bias-temperature": biasTemperature,
  "group-temperature": groupTemperature,
  "unknown-score": unknownScore,
  "max-softmax": (_step, said, known, countries) => unknownScore({ score: "max-softmax" }, said, known, countries),
  "unknown-probability": unknownProbability,
  "unknown-threshold": unknownThreshold,
  "min-cost": minCost,
  prior,
  "observation-mean": pooledBefore,
  "observation-max": pooledBefore,
  "observation-attention": pooledBefore,
};

/**
 * The scores with all steps applied.
 * @param {any[]} steps
 * @param {Said} raw
 * @param {Known} known
 * @param {Countries} countries
 * @returns {Said}
 */
export function applied(steps, raw, known, countries) {
  return steps.reduce((said, step) => STEPS[step.step](step, said, known, countries), raw);
}

/**
 * Several photos of one specimen: the mean of their log-probabilities.
 * @param {Said[]} photos
 * @returns {Said}
 */
export function pooled(photos) {
  if (photos.length === 1) return photos[0];
  const logs = photos.map((one) => logSoftmax(one.columns));
  const mean = logs[0].map((_, code) => logs.reduce((sum, one) => sum + one[code], 0) / logs.length);
  const strange = photos.map((one) => one.unknown);
  const unknown = strange.includes(null) ? null : strange.reduce((/** @type {number} */ sum, one) => sum + /** @type {number} */ (one), 0) / strange.length;
  return { ...photos[0], columns: logSoftmax(mean), scale: "log_probability", unknown };
}

/** The probability of each label. @param {Said} said @returns {Float64Array} */
export const chancesOf = (said) => probabilities(said).slice(0, said.labels);
