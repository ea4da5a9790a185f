/** What is known about a find besides its photos, as priors read it (`fieldmark.steps.priors.contexts`). */

/** @typedef {{date?: string, lat?: number, lon?: number, country?: string, habitat?: string, substrate?: string, site?: string}} Known */
/** @typedef {{by_name: Record<string, [string, string]>, not_known: string[]}|null} Countries */

const SEASONS = ["Dec-Feb", "Mar-May", "Jun-Aug", "Sep-Nov"];
const CELLS_KM = [200, 50, 10];
const SEMI_MAJOR_M = 6_378_137;
const FLATTENING = 1 / 298.257223563;
const E = Math.sqrt(FLATTENING * (2 - FLATTENING));
const STANDARD_PARALLEL = Math.PI / 6;

/** @param {number} sine */
const strip = (sine) => (1 - E ** 2) * (sine / (1 - (E * sine) ** 2) + Math.atanh(E * sine) / E);
const WHOLE = strip(1);
const RADIUS_M = SEMI_MAJOR_M * Math.sqrt(WHOLE / 2);
const SCALE = ((Math.cos(STANDARD_PARALLEL) / Math.sqrt(1 - (E * Math.sin(STANDARD_PARALLEL)) ** 2)) * SEMI_MAJOR_M) / RADIUS_M;

/** @param {number} lat @param {number} lon @param {number} side */
function cell(lat, lon, side) {
  const sine = Math.min(Math.max(strip(Math.sin((lat * Math.PI) / 180)) / WHOLE, -1), 1);
  const east = ((((lon + 180) % 360) + 360) % 360) * (Math.PI / 180);
  const row = Math.floor((RADIUS_M * Math.sin(Math.asin(sine))) / SCALE / (1000 * side));
  return `${side} km ${row} ${Math.floor((east * RADIUS_M * SCALE) / (1000 * side))}`;
}

/** @param {Known} known @param {string} name */
function text(known, name) {
  const value = /** @type {Record<string, unknown>} */ (known)[name];
  return value === undefined || value === null ? "" : String(value).trim();
}

/**
 * @param {string} name
 * @param {Known} known
 * @param {Countries} countries
 * @returns {(string|null)[]}
 */
function ownLevels(name, known, countries) {
  if (name === "place") {
    const { lat, lon } = known;
    const there = typeof lat === "number" && typeof lon === "number" && Math.abs(lat) <= 90 && Math.abs(lon) <= 180;
    return CELLS_KM.map((side) => (there ? cell(/** @type {number} */ (lat), /** @type {number} */ (lon), side) : null));
  }
  if (name === "month" || name === "season") {
    const month = known.date ? Number(known.date.slice(5, 7)) : 0;
    const season = month ? SEASONS[Math.floor((month % 12) / 3)] : null;
    return name === "season" ? [season] : [season, month ? String(month).padStart(2, "0") : null];
  }
  const value = text(known, name);
  if (name === "country") {
    const plain = value.toLowerCase();
    if (!countries || plain === "" || countries.not_known.includes(plain)) return [null, null];
    const found = countries.by_name[plain];
    return found ? [found[1], found[0]] : [null, plain];
  }
  return [value === "" ? null : value];
}

/**
 * The values of a context, widest first; null where nothing is known.
 * @param {string} context
 * @param {Known} known
 * @param {Countries} countries
 * @returns {(string|null)[]}
 */
export function levelsOf(context, known, countries) {
  /** @type {(string|null)[]} */
  let levels = [];
  for (const name of context.split("/")) {
    const outer = levels.at(-1);
    const own = ownLevels(name, known, countries);
    levels = levels.concat(levels.length ? own.map((one) => (outer === null || one === null ? null : `${outer} / ${one}`)) : own);
  }
  return levels;
}

/**
 * What is known, without some columns.
 * @param {Known} known
 * @param {string[]} columns
 * @returns {Known}
 */
export const without = (known, columns) => Object.fromEntries(Object.entries(known).filter(([name]) => !columns.includes(name)));
