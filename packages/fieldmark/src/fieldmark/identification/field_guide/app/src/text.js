/** An answer in words (`fieldmark.identification.text`). No sentence here calls anything safe. */

/** @typedef {import("./answers.js").Answer} Answer */
/** @typedef {import("./answers.js").Name} Name */

const SHOWN_IN_LIST = 8;
/** @type {Record<string, string>} */
const CALLED = { photo: "Photo", date: "Season", place: "Place", region: "Country" };
/** @type {[number, string][]} */
const CONFIDENCE_WORDS = [[0.95, "almost certainly"], [0.75, "probably"], [0.4, "perhaps"], [0, "unsure"]];

/** A share for people; no certainty is stated that nobody has. @param {number} share */
export function percent(share) {
  if (share < 0.01) return "under 1 %";
  return share > 0.99 ? "over 99 %" : `${(100 * share).toFixed(0)} %`;
}

/** The same with more digits where it is small. @param {number} share */
export function exactPercent(share) {
  if (share < 0.001) return "less than 0.1 %";
  if (share < 0.1) return `${(100 * share).toFixed(1)} %`;
  return share > 0.995 ? "more than 99 %" : `${(100 * share).toFixed(0)} %`;
}

/** @param {number} probability */
export const confidenceWord = (probability) => CONFIDENCE_WORDS.find(([least]) => Math.round(100 * probability) / 100 >= least)?.[1] ?? "unsure";

/** @param {Name} name */
export const shown = (name) => name.common_name || name.species || name.label;

/** @param {Name} name */
export const fullName = (name) => (name.species && name.species !== shown(name) ? `${shown(name)} (${name.species})` : shown(name));

/** @param {string} context */
export const called = (context) => CALLED[context] ?? context.charAt(0).toUpperCase() + context.slice(1);

/** The answer in one sentence. @param {Answer} answer */
export function headline(answer) {
  if (answer.verdict.known === false) return `Possibly unknown: perhaps none of the ${answer.knows.toLocaleString("en")} names the model knows.`;
  const { claim } = answer;
  if (claim === null) return "Not sure enough to name it at any rank.";
  const of = claim.labels.length > 1 ? `, one of ${claim.labels.length} names` : "";
  return `${claim.name} (${claim.rank}${of}), ${percent(claim.probability)} (${confidenceWord(claim.probability)})`;
}

/** Everything about an answer but its names and pictures, a line each. @param {Answer} answer @returns {string[]} */
export function sentences(answer) {
  const lines = [...answer.remarks];
  if (answer.verdict.because) lines.push(answer.verdict.because);
  const chosen = answer.short_list;
  if (chosen) {
    const more = chosen.names.length - SHOWN_IN_LIST;
    const names = chosen.names.slice(0, SHOWN_IN_LIST).map(shown).join(", ") + (more > 0 ? ` and ${more} more` : "");
    lines.push(chosen.coverage === null
      ? `Short list, without a guarantee: ${names}. ${chosen.withdrawn}`.trim()
      : `Short list that contains the right name for ${(100 * chosen.coverage).toFixed(0)} % of known specimens: ${names}`);
  }
  for (const source of answer.sources) {
    lines.push(`Without the ${called(source.name).toLowerCase()}${source.value ? ` (${source.value})` : ""} ${percent(source.without)}, with it ${percent(source.with_it)}`);
  }
  lines.push(...answer.ignored);
  if (answer.missing.length) lines.push(`The model could also use: ${answer.missing.map((name) => called(name).toLowerCase()).join(", ")}.`);
  if (answer.microscopic.length) {
    const hint = answer.microscopic.length === answer.photos ? " Add a photo of the whole specimen." : "";
    lines.push(`Looks like a microscope photo: photo ${answer.microscopic.map((one) => one + 1).join(", ")}.${hint}`);
  }
  return lines;
}
