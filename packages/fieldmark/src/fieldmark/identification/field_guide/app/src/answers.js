/**
 * The answer to photos of one specimen, put together as `fieldmark.identification.photos` does: the keys are those of
 * `PhotoAnswer.to_json`.
 */

import { without } from "./contexts.js";
import { DangerQuestion } from "./dangers.js";
import { below, highestPlace, ranked, six, total } from "./scores.js";
import { applied, chancesOf, pooled } from "./steps.js";

/** @typedef {import("./steps.js").Said} Said */
/** @typedef {import("./contexts.js").Known} Known */
/** @typedef {{label: string, species: string|null, common_name: string|null, probability: number, poisonous: boolean|null}} Name */
/** @typedef {{rank: string, name: string, probability: number, labels: string[], lineage: Record<string, string>, right_on_val: number[]|null, label: string|null, common_name: string|null}} Claim */
/** @typedef {{known: boolean|null, strangeness: number|null, line: number|null, because: string}} Verdict */
/** @typedef {{group: string, probability: number, allowed: number, because: string[], look_alikes: {name: Name, rows: number[]}[], advice: string[], brief: boolean}} Danger */
/**
 * @typedef {object} Answer
 * @property {Name[]} names
 * @property {number|null} unknown
 * @property {boolean} simulated
 * @property {Claim|null} claim
 * @property {Verdict} verdict
 * @property {Danger|null} danger
 * @property {{names: Name[], coverage: number|null, calibrated_on: number, withdrawn: string}|null} short_list
 * @property {{name: string, value: string, without: number, with_it: number}[]} sources
 * @property {string[]} ignored
 * @property {string[]} missing
 * @property {{label: string, shown: string, likeness: number, row: number}[]} nearest
 * @property {string[]} next_photos
 * @property {number[]} microscopic
 * @property {number} knows
 * @property {string} group
 * @property {boolean} threatened
 * @property {number} photos
 * @property {string[]} remarks
 */
/** @typedef {{said: Said, embedding: Float32Array|null, plain: boolean, microscopic: boolean}} LookedAt */

const NEAREST = 5, LOOK_ALIKES = 3, PHOTOS_EACH = 2, TOP = 3;
const WORTH_NAMING = 0.002, LIKELY = 0.05;
const OF_LABEL = "name", OTHER = "other", FUNGI = "fungi";
const PLAIN = "It shows a single color.";
const BY_RULE = "A rule of the model calls it unknown.";
/** @type {Record<string, string>} */
const CONTEXT_OF = { lat: "place", lon: "place", country: "region" };
/** @type {Record<string, string>} */
const CALLED = { date: "The date", place: "The place", region: "The country", site: "The site", habitat: "The habitat", substrate: "The substrate" };

/** Training photos: their features in 8 bits, each row scaled to length one. */
export class KeptPhotos {
  /** @param {Int8Array} values @param {number} rows */
  constructor(values, rows) {
    this.values = values;
    this.rows = rows;
    this.width = rows ? values.length / rows : 0;
    this.scale = new Float64Array(rows);
    for (let row = 0; row < rows; row++) {
      let sum = 0;
      for (let at = row * this.width; at < (row + 1) * this.width; at++) sum += values[at] ** 2;
      this.scale[row] = 1 / Math.max(Math.sqrt(sum), Number.MIN_VALUE);
    }
  }

  /** The cosine between features and each kept row. @param {ArrayLike<number>} features @returns {Float64Array} */
  likeness(features) {
    const asked = unit(features);
    const found = new Float64Array(this.rows);
    for (let row = 0, at = 0; row < this.rows; row++) {
      let sum = 0;
      for (let column = 0; column < this.width; column++, at++) sum += this.values[at] * asked[column];
      found[row] = sum * this.scale[row];
    }
    return found;
  }
}

/** @param {ArrayLike<number>} features @returns {Float64Array} */
function unit(features) {
  const length = Math.max(Math.sqrt(total(Array.from(features, (one) => one * one))), Number.MIN_VALUE);
  return Float64Array.from(features, (one) => one / length);
}

/** A model asked about one specimen. */
export class Specimen {
  /**
   * @param {any} book What `guide.json` holds.
   * @param {KeptPhotos|null} kept
   * @param {LookedAt[]} photos
   * @param {Known} known
   */
  constructor(book, kept, photos, known) {
    this.book = book;
    this.guide = book.guide;
    this.kept = kept && kept.rows ? kept : null;
    this.photos = photos;
    this.known = known;
    this.labels = book.labels;
    this.raw = pooled(photos.map((one) => one.said));
    this.usable = Object.keys(book.contexts);
    this.given = [...new Set(Object.keys(known).map((name) => CONTEXT_OF[name] ?? name))];
    this.used = this.usable.filter((name) => this.given.includes(name) && book.contexts[name].some((/** @type {string} */ one) => one in known));
    this.final = this.predict([]);
    this.chances = chancesOf(this.final);
    /** @type {Float64Array} */
    this.stated = this.chances;
    const embeddings = photos.map((one) => one.embedding);
    this.embeddings = embeddings.includes(null) ? null : /** @type {Float32Array[]} */ (embeddings);
    this.alike = this.kept && this.embeddings ? this.embeddings.map((one) => /** @type {KeptPhotos} */ (this.kept).likeness(one)) : null;
  }

  /** The scores as if nothing were known of some contexts. @param {string[]} contexts */
  predict(contexts) {
    const gone = contexts.flatMap((name) => this.book.contexts[name] ?? [name]);
    return applied(this.book.steps, this.raw, without(this.known, gone), this.book.countries);
  }

  /** @returns {Answer} */
  answer() {
    const verdict = this.verdict();
    const claim = verdict.known === false ? null : this.claim();
    this.holdNamesTo(claim);
    const group = this.group();
    return {
      names: this.names(ranked(this.chances).slice(0, TOP)),
      unknown: this.final.unknown,
      simulated: this.book.simulated,
      claim,
      verdict,
      danger: new DangerQuestion(this.book, this.chances, verdict, claim).notice((groups) => this.lookAlikes(groups)),
      short_list: this.shortList(),
      sources: this.sources(),
      ignored: this.given.filter((name) => !this.used.includes(name)).map((name) => `${CALLED[name] ?? name} was given, but the model does not use it.`),
      missing: this.usable.filter((name) => !this.used.includes(name)),
      nearest: this.nearest(),
      next_photos: this.book.words.next_photos[group] ?? [],
      microscopic: this.microscopic(),
      knows: this.labels.length,
      group,
      threatened: this.labels.some((/** @type {any} */ one, /** @type {number} */ code) => one.threatened && this.chances[code] >= LIKELY),
      photos: this.photos.length,
      remarks: this.remarks(),
    };
  }

  /** @returns {string[]} */
  remarks() {
    if (this.guide || this.final.unknown !== null) return [];
    return [
      `The model knows ${this.labels.length.toLocaleString("en")} names and gives one of them to whatever it is shown, ` +
        "however strange; a high probability does not mean that it is one of them.",
    ];
  }

  group() {
    /** @type {Map<string, number>} */
    const weight = new Map();
    this.labels.forEach((/** @type {any} */ one, /** @type {number} */ code) => weight.set(one.group, (weight.get(one.group) ?? 0) + this.chances[code]));
    let best = OTHER, most = -1;
    for (const [name, share] of weight) if (share > most) [best, most] = [name, share];
    return best;
  }

  calledUnknown() {
    if (this.final.decision !== null) return this.final.decision === -1;
    return this.final.columns.length > this.final.labels && highestPlace(this.final.columns) === this.final.labels;
  }

  /** @returns {Verdict} */
  verdict() {
    const called = this.calledUnknown();
    if (!this.guide) return { known: called ? false : null, strangeness: null, line: null, because: called ? BY_RULE : "" };
    const line = this.guide.unknown_line;
    if (this.photos.every((one) => one.plain)) return { known: false, strangeness: 1, line, because: PLAIN };
    const distance = this.distance();
    const score = this.strangeness(distance, 1 - this.chances[highestPlace(this.chances)]);
    let because = "";
    if (score > line) {
      const apart = distance !== null && this.strangeness(distance, 0) > line;
      const looks = apart
        ? "It looks unlike the training photos of the model"
        : "No name stands out more than for something the model does not know";
      because = `${looks}: more unusual than ${(100 * score).toFixed(0)} % of the validation photos of known species.`;
    } else if (called) because = BY_RULE;
    return { known: because === "", strangeness: score, line, because };
  }

  /** How far the nearest training photos lie, on average over the photos. @returns {number|null} */
  distance() {
    if (!this.alike) return null;
    const each = this.alike.map((likeness) => {
      const sorted = likeness.slice().sort();
      const near = sorted[sorted.length - Math.min(this.guide.neighbor, sorted.length)];
      return Math.sqrt(Math.max(2 - 2 * near, 0));
    });
    return total(each) / each.length;
  }

  /** @param {number|null} distance @param {number} doubt */
  strangeness(distance, doubt) {
    const { far, doubt: doubts } = this.guide;
    const byDoubt = below(doubts, doubt) / (doubts.length + 1);
    if (!far.length || distance === null) return byDoubt;
    return Math.max(below(far, distance) / (far.length + 1), byDoubt);
  }

  /** @param {string} rank @param {number} probability */
  borneOutAt(rank, probability) {
    const bands = this.guide.bands_from;
    let band = 0;
    while (band + 1 < bands.length && bands[band + 1] <= probability) band++;
    return Math.min(probability, this.guide.roll_up.bands[rank][band]);
  }

  /** @param {number} chance */
  borneOut(chance) {
    if (!this.guide || !(OF_LABEL in this.guide.roll_up.bands) || chance < this.guide.bands_from[1]) return chance;
    return this.borneOutAt(OF_LABEL, chance);
  }

  /** @returns {Claim|null} */
  claim() {
    if (!this.guide) return null;
    const { lines, right } = this.guide.roll_up;
    for (const [rank, line] of Object.entries(lines)) {
      const { of, records } = this.book.ranks[rank];
      const sums = new Float64Array(records.length);
      of.forEach((/** @type {number} */ taxon, /** @type {number} */ code) => {
        if (taxon >= 0) sums[taxon] += this.chances[code];
      });
      const best = highestPlace(sums);
      if (line === null || !(sums[best] >= line)) continue;
      const codes = of.flatMap((/** @type {number} */ taxon, /** @type {number} */ code) => (taxon === best ? [code] : []));
      if (codes.length === this.labels.length && this.labels.length > 1) return null;
      return {
        ...records[best],
        probability: this.borneOutAt(rank, sums[best]),
        labels: codes.map((/** @type {number} */ code) => this.labels[code].label),
        right_on_val: right[rank] ?? null,
        label: rank === OF_LABEL ? this.labels[best].label : null,
      };
    }
    return null;
  }

  /** Lets no name be surer than validation bears out, nor than a taxon that holds it. @param {Claim|null} claim */
  holdNamesTo(claim) {
    this.stated = this.chances.map((chance, code) => {
      const own = this.borneOut(chance);
      return claim && claim.labels.includes(this.labels[code].label) ? Math.min(own, claim.probability) : own;
    });
  }

  /** @param {number[]} codes @returns {Name[]} */
  names(codes) {
    return codes.map((code) => {
      const { label, species, common_name, poisonous } = this.labels[code];
      return { label, species, common_name, probability: six(this.stated[code]), poisonous };
    });
  }

  /** @returns {Answer["short_list"]} */
  shortList() {
    if (!this.guide) return null;
    const order = ranked(this.chances);
    const sets = this.guide.conformal[[...new Set(this.used)].sort().join("+")];
    if (!sets) {
      let gathered = 0, number = 0;
      while (number < order.length && gathered < 0.9) gathered += this.chances[order[number++]];
      return { names: this.names(order.slice(0, number)), coverage: null, calibrated_on: 0, withdrawn: this.noPromise() };
    }
    const best = highestPlace(this.chances);
    const inside = order.filter((code) => code === best || this.chances[code] >= sets.lines[below(sets.upper, this.guide.counts[code])]);
    return { names: this.names(inside), coverage: sets.coverage, calibrated_on: total(sets.calibrated_on), withdrawn: "" };
  }

  noPromise() {
    const { conformal, checked } = this.guide;
    if (!Object.keys(conformal).length) {
      const drawn = checked ? `The ${checked.observations} checked answers are` : "Validation has";
      return `${drawn} too few observations for a list with a guarantee.`;
    }
    const known = this.used.length ? `${this.used.join(" and ")} alone` : "the photo alone";
    return `The list was not calibrated for answers from ${known}, so it guarantees nothing.`;
  }

  /** @returns {Answer["sources"]} */
  sources() {
    const best = highestPlace(this.chances);
    const full = this.chances[best];
    const most = this.stated[best];
    const rows = [];
    const counts = this.guide?.counts;
    const all = counts ? total(counts) : 0;
    const shown = (/** @type {number} */ one) => six(Math.min(this.borneOut(one), most));
    if (all) {
      const bare = this.used.length ? chancesOf(this.predict(this.used))[best] : full;
      const value = this.photos.length > 1 ? `${this.photos.length} photos` : "";
      rows.push({ name: "photo", value, without: shown(counts[best] / all), with_it: shown(bare) });
    }
    for (const name of this.used) {
      rows.push({ name, value: this.value(name), without: shown(chancesOf(this.predict([name]))[best]), with_it: shown(full) });
    }
    return rows;
  }

  /** @param {string} context */
  value(context) {
    if (context === "place") return `${this.known.lat}, ${this.known.lon}`;
    return String(/** @type {any} */ (this.known)[context === "region" ? "country" : context] ?? "");
  }

  /** The likeness of each kept photo to the mean of the photos asked about. */
  likenessOfMean() {
    if (!this.kept || !this.embeddings) return null;
    const units = this.embeddings.map(unit);
    const mean = units[0].map((_, column) => total(units.map((one) => one[column])) / units.length);
    return this.kept.likeness(mean);
  }

  /** @returns {Answer["nearest"]} */
  nearest() {
    const likeness = this.likenessOfMean();
    if (!likeness) return [];
    return ranked(likeness).slice(0, NEAREST).map((row) => {
      const taxon = this.labels[this.guide.kept.codes[row]];
      return { label: taxon.label, shown: taxon.common_name || taxon.species || taxon.label, likeness: Math.round(likeness[row] * 1e4) / 1e4, row };
    });
  }

  microscopic() {
    if (!this.labels.some((/** @type {any} */ one) => one.group === FUNGI)) return [];
    return this.photos.flatMap((one, number) => (one.microscopic ? [number] : []));
  }

  /** The likeliest dangerous species of some groups. @param {string[]} groups @returns {Danger["look_alikes"]} */
  lookAlikes(groups) {
    const order = ranked(this.chances).filter((code) => this.labels[code].dangerous && groups.includes(this.labels[code].group));
    let named = order.slice(0, LOOK_ALIKES).filter((code) => this.chances[code] >= WORTH_NAMING);
    if (!named.length) named = order.slice(0, 1);
    const likeness = this.likenessOfMean();
    const near = likeness ? ranked(likeness) : [];
    const pictured = new Set((this.book.pictures ?? []).map((/** @type {number[]} */ one) => one[0]));
    return named.map((code) => ({
      name: this.names([code])[0],
      rows: near.filter((row) => this.guide.kept.codes[row] === code && pictured.has(row)).slice(0, PHOTOS_EACH),
    }));
  }
}
