/**
 * Whether to be careful with a specimen (`fieldmark.identification.danger_notices`). A guide carries one network, so that
 * the rule is the one for photos of which no second network was asked: the guide's own probabilities tell the groups.
 */

import { total } from "./scores.js";
import { exactPercent } from "./text.js";

/** @typedef {import("./answers.js").Claim} Claim */
/** @typedef {import("./answers.js").Danger} Danger */
/** @typedef {import("./answers.js").Verdict} Verdict */

const IMPROBABLE = 0.05, LIKELY = 0.5;
const OTHER = "other", FUNGI = "fungi", SNAKES = "snakes";

/** What decides about a notice. */
export class DangerQuestion {
  /**
   * @param {any} book What `guide.json` holds.
   * @param {ArrayLike<number>} chances The probability of each label.
   * @param {Verdict} verdict Whether the specimen is like anything that the guide knows.
   * @param {Claim|null} claim What the guide is sure enough of.
   */
  constructor(book, chances, verdict, claim) {
    this.labels = book.labels;
    this.words = book.words;
    this.chances = chances;
    this.allowed = book.guide ? book.guide.danger_line : book.allowed_by_costs;
    this.verdict = verdict;
    this.claim = claim;
  }

  /** Why to be careful; null where there is no reason. @param {(groups: string[]) => Danger["look_alikes"]} lookAlikes @returns {Danger|null} */
  notice(lookAlikes) {
    const { allowed } = this;
    const probability = total(this.groups().map((group) => this.dangerIn(group)));
    const feared = this.feared(probability);
    if (!feared.length) return null;
    feared.sort((a, b) => this.shareOf(b) - this.shareOf(a));
    let near = feared.filter((group) => this.isPlausible(group));
    if (total(feared.map((group) => this.shareOf(group))) >= IMPROBABLE) near = feared; // improbable groups count together
    if (!near.length) {
      return { group: feared[0], probability, allowed, because: [this.improbableLine(feared)], look_alikes: [], advice: [], brief: true };
    }
    const reasons = near.flatMap((group) => this.reasons(group));
    const because = reasons.length ? reasons : [this.reasonTogether(probability)];
    const advice = [...new Set(near.flatMap((group) => this.words.advice[group] ?? this.words.other_advice))];
    return { group: near[0], probability, allowed, because, look_alikes: lookAlikes(near), advice, brief: false };
  }

  groups() {
    const found = new Set([...this.labels.map((/** @type {any} */ one) => one.group), FUNGI, SNAKES]);
    return /** @type {string[]} */ ([...found].sort());
  }

  /** @param {number} probability Of danger in all groups together. */
  feared(probability) {
    const some = probability > this.allowed ? this.groups().filter((group) => this.dangerIn(group) > 0) : [];
    const feared = some.filter((group) => this.dangerIn(group) > this.allowed / some.length);
    if (this.verdict.known !== false) return feared;
    return [...feared, ...[FUNGI, SNAKES].filter((group) => !feared.includes(group) && this.shareOf(group) >= LIKELY)];
  }

  /** @param {(label: any) => boolean} chosen */
  share(chosen) {
    return total(this.labels.map((/** @type {any} */ one, /** @type {number} */ code) => (chosen(one) ? this.chances[code] : 0)));
  }

  /** The probability of the dangerous labels of a group. @param {string} group */
  dangerIn(group) {
    return this.share((one) => one.group === group && one.dangerous);
  }

  /** The probability of a group; of "other", which holds dogs and scorpions, its danger. @param {string} group */
  shareOf(group) {
    return group === OTHER ? this.dangerIn(group) : this.share((one) => one.group === group);
  }

  /** Whether the specimen may well belong to a group. @param {string} group */
  isPlausible(group) {
    return this.shareOf(group) >= IMPROBABLE || !this.sureOfAnother(group);
  }

  /** Whether the guide is sure of a taxon below the kingdom that holds nothing of a group. @param {string} group */
  sureOfAnother(group) {
    const { claim, verdict } = this;
    if (verdict.known === false || claim === null || claim.rank === "kingdom") return false;
    const near = this.labels.filter((/** @type {any} */ one) => one.group === group && (one.dangerous || group !== OTHER));
    return !near.some((/** @type {any} */ one) => claim.labels.includes(one.label));
  }

  /** @param {string} group */
  reasons(group) {
    const own = this.labels.filter((/** @type {any} */ one) => one.group === group);
    const told = [];
    if (own.length && this.dangerIn(group) > this.allowed) told.push(this.probabilityLine(group, own));
    if (own.length && this.verdict.known === false) told.push(`It may be a species that the model does not know, possibly a ${this.word(group)} one.`);
    return told;
  }

  /** Why to be careful where only all groups together are above the line. @param {number} probability */
  reasonTogether(probability) {
    return `The probability of all dangerous species together is ${exactPercent(probability)}; a warning is shown above ${this.least()}.`;
  }

  /** The line above which a warning is shown. */
  least() {
    return this.allowed < 0.001 ? "less than 0.1 %" : `${(100 * this.allowed).toFixed(1)} %`;
  }

  /** @param {string} group */
  word(group) {
    return this.words.feared[group] ?? "poisonous or venomous";
  }

  /** @param {string} group @param {any[]} own The labels of that group. */
  probabilityLine(group, own) {
    if (own.every((one) => one.poisonous === null)) return `The model has no data on which of its ${group} are poisonous, so all of them count as poisonous.`;
    const word = this.word(group);
    const named = own.every((one) => !one.poisonous || one.species);
    const feared = `a ${word} species${named ? "" : `, or of a group that holds ${word} ones,`}`;
    return `The probability of ${feared} is ${exactPercent(this.dangerIn(group))}; a warning is shown above ${this.least()}.`;
  }

  /** One line about dangerous groups that a specimen hardly belongs to. @param {string[]} groups */
  improbableLine(groups) {
    const order = groups.slice().sort((a, b) => this.dangerIn(b) - this.dangerIn(a));
    const shown = order.map((name) => (name === OTHER ? "other kinds" : name));
    const named = shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}` : shown.join("");
    const share = exactPercent(total(order.map((name) => this.dangerIn(name)))) + (shown.length > 1 ? " together" : "");
    return `Dangerous ${named} are unlikely (${share}), but not ruled out. ${neverDo(order, this.words).join(" ")}`;
  }
}

/** What must not be done because of an answer. @param {string[]} groups @param {any} words @returns {string[]} */
function neverDo(groups, words) {
  return [...new Set(groups.map((name) => words.never[name] ?? words.other_advice[0]))];
}

/** What is said where an answer gives no reason to warn, by a guide that knows dangerous names. @param {any} book */
export function standingAdvice(book) {
  const groups = book.labels.flatMap((/** @type {any} */ one) => (one.dangerous ? [one.group] : []));
  return neverDo(groups, book.words);
}
