/** What the guide knows, what it scored, on what it was trained, and what it must not be used for. */

import { dataOf, openBook } from "./book.js";
import { byId, element, listed } from "./dom.js";

const DANGERS =
  "Warnings follow from the names in this guide alone. On a computer, fieldmark identify also asks a second network whether a photo may show a fungus or a snake, " +
  "whatever model answers; this guide does not carry it. It cannot warn of what it has no name for, and may warn where identify would not.";

/** @param {number|null} value @param {boolean} share */
const number = (value, share) => (value === null ? "not known" : share ? `${(100 * value).toFixed(1)}\u00a0%` : value.toFixed(3));

/** @param {[number, number|null, number|null]} triple @param {string} unit */
function withInterval([value, low, high], unit) {
  const sign = unit === "points" && value > 0 ? "+" : "";
  const between = low === null || high === null ? "" : ` (${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)})`;
  return `${sign}${(100 * value).toFixed(1)}\u00a0${unit}${between}`;
}

/** @param {any} about */
function showScores(about) {
  for (const [part, scores] of Object.entries(about.scores)) {
    const rows = /** @type {any[]} */ (scores).map((one) => {
      const between = one.low === null || one.high === null ? "" : `${number(one.low, one.share)} to ${number(one.high, one.share)}`;
      return element("tr", {}, element("th", { scope: "row" }, one.title), element("td", { class: "num" }, number(one.value, one.share)), element("td", { class: "num" }, between));
    });
    const head = element("tr", {}, ...["Score", "Value", "95 % interval"].map((title, at) => element("th", { scope: "col", ...(at ? { class: "num" } : {}) }, title)));
    const table = element("table", { class: "compact" }, element("thead", {}, head), element("tbody", {}, ...rows));
    byId("scores").append(element("h2", {}, `What it scored on ${part}`), element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Scores on ${part}` }, table));
  }
}

/** @param {any} about */
function showLosses(about) {
  const { losses, observations, not_measured: reason } = about.losses;
  const learned = about.parts.includes("val") ? " The model was also trained on validation, which flatters all three alike." : "";
  byId("weights").textContent = reason
    ? `This guide stores its weights in ${about.weights}. ${reason}`
    : `This guide stores its weights in ${about.weights}. First answers to ${observations} observations of validation, with 95 % intervals; differences are paired.${learned}`;
  byId("losses").replaceChildren(...["single", "half", "8-bit"].map((name) => {
    const one = losses.find((/** @type {any} */ loss) => loss.precision === name);
    return element("tr", {},
      element("th", { scope: "row" }, name),
      element("td", { class: "num" }, `${(about.sizes[name] / 1e6).toFixed(1)} MB`),
      element("td", { class: "num" }, one ? withInterval(one.right, "%") : "not measured"),
      element("td", { class: "num" }, one?.less ? withInterval(one.less, "points") : one ? "" : "not measured"));
  }));
}

async function show() {
  const [book, about] = await Promise.all([openBook(), dataOf("../about.json")]);
  document.title = `About: ${book.title}`;
  byId("title").textContent = book.title;
  byId("made").textContent = `Fieldmark ${about.version}`;
  const facts = [
    `It knows ${about.labels.toLocaleString("en")} names and no others.`,
    `Method ${about.model}, learned from ${about.parts.join(" and ")} of ${about.benchmark} (seed ${about.seed}).`,
    `License: ${about.license}. The terms of the training photos apply as well, also for the small pictures in this guide.`,
    ...about.external_data.map((/** @type {string} */ one) => `External data: ${one}.`),
    `Networks are run by ${about.runtime}.`,
    DANGERS,
    "Photos, places and finds stay on this device. Nothing is sent anywhere.",
    "Identifications are automatic. They are not advice on eating, handling or treating anything.",
  ];
  if (about.simulated) facts.unshift("Simulated: it was trained on simulated data, whose species do not exist.");
  listed(byId("facts"), facts);
  byId("never").replaceChildren(...about.never.map((/** @type {string} */ one) => element("p", { class: "notice bad" }, one)));
  showScores(about);
  showLosses(about);
  listed(byId("names"), book.labels.map((/** @type {any} */ one) => [...new Set([one.common_name, one.species, one.label])].filter(Boolean).slice(0, 2).join(", ")));
}

show().catch((error) => {
  byId("problem").textContent = error instanceof Error ? error.message : String(error);
  byId("problem").hidden = false;
});
