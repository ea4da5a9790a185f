/**
 * Finds as files for others: Darwin Core, a table of what a person checked (`fieldmark calibrate`, `fit --add`), and a
 * folder of answers (`fieldmark review`), with the photos, in one archive.
 */

import { headline } from "./text.js";

/** @typedef {import("./finds.js").Find} Find */

const COARSE_M = 11_000;
const CHECKED = ["file", "label", "observation", "machine", "probability", "when", "date", "lat", "lon"];
/** @type {Record<string, string>} */
const ENDINGS = { "image/jpeg": "jpg", "image/png": "png", "image/webp": "webp", "image/avif": "avif", "image/heic": "heic", "image/tiff": "tif" };

/** @param {unknown} value */
function cell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {string[]} columns @param {Record<string, unknown>[]} rows */
export const csv = (columns, rows) => [columns, ...rows.map((row) => columns.map((name) => row[name]))].map((line) => `${line.map(cell).join(",")}\n`).join("");

/** Where the photos of a find lie in the archive. @param {Find} find */
export const filesOf = (find) => find.photos.map((photo, number) => `photos/${find.id}-${number + 1}.${ENDINGS[photo.type] ?? "jpg"}`);

/** @param {number} degrees */
const coarse = (degrees) => Math.round(degrees * 10) / 10;

/** The place as it is told: rounded where a likely species is threatened. @param {Find} find */
function place(find) {
  const { lat, lon } = find.known;
  if (lat === undefined || lon === undefined) return {};
  return find.answer.threatened ? { lat: coarse(lat), lon: coarse(lon) } : { lat, lon };
}

/**
 * One row of Simple Darwin Core (`fieldmark.identification.darwin_core_rows`).
 * @param {Find} find
 * @param {any} book
 * @returns {Record<string, unknown>}
 */
function darwinCoreRow(find, book) {
  const { answer, known } = find;
  const { words } = book;
  const { lat, lon } = place(find);
  const person = find.checked ? book.ranks.name.records[book.labels.findIndex((/** @type {any} */ one) => one.label === find.checked)] : null;
  const taxon = person ?? answer.claim;
  const remarks = [words.machine, headline(answer)];
  if (person) remarks.push(`The person who found it says: ${person.name}.`);
  if (answer.simulated) remarks.push("The model was trained on simulated data.");
  return {
    occurrenceID: find.id,
    basisOfRecord: "Occurrence",
    occurrenceStatus: "present",
    eventDate: known.date,
    country: known.country,
    habitat: known.habitat,
    ...(lat === undefined ? {} : { decimalLatitude: lat, decimalLongitude: lon, geodeticDatum: "WGS84" }),
    ...(lat !== undefined && answer.threatened ? { coordinateUncertaintyInMeters: COARSE_M, informationWithheld: words.withheld } : {}),
    ...(taxon ? { scientificName: taxon.name, vernacularName: taxon.common_name, ...taxon.lineage, ...(taxon.rank === "name" ? {} : { taxonRank: taxon.rank }) } : {}),
    identifiedBy: `Fieldmark ${book.version}, model ${book.model}`,
    dateIdentified: find.when.slice(0, 10),
    identificationVerificationStatus: words.unverified,
    identificationRemarks: remarks.join(" "),
    associatedMedia: filesOf(find).join(" | "),
  };
}

/** @param {Find[]} finds @param {any} book */
export const darwinCore = (finds, book) => csv(book.words.terms, finds.map((find) => darwinCoreRow(find, book)));

/** What a person said, one row per photo; finds that nobody has checked are left out. @param {Find[]} finds */
export function checkedTable(finds) {
  const rows = finds.filter((find) => find.checked).flatMap((find) =>
    filesOf(find).map((file) => ({
      file,
      label: find.checked,
      observation: find.id,
      machine: find.answer.claim?.label ?? "",
      probability: find.answer.names[0]?.probability,
      when: find.when,
      date: find.known.date,
      ...place(find),
    })));
  return csv(CHECKED, rows);
}

/** One line per find, as `fieldmark review` reads them. @param {Find[]} finds */
function answerLines(finds) {
  return finds.map((find) => {
    const { answer, known } = find;
    const { lat = null, lon = null } = place(find);
    return `${JSON.stringify({
      observation_id: find.id,
      files: filesOf(find),
      name: answer.claim ? (answer.claim.label ?? answer.claim.name) : "",
      rank: answer.claim?.rank === "name" ? null : (answer.claim?.rank ?? null),
      probability: answer.claim?.probability ?? null,
      certainty: answer.claim?.probability ?? 0,
      verdict: answer.verdict.known === false ? "possibly unknown" : "known",
      danger: answer.danger?.because.join(" ") ?? null,
      dangerous: answer.danger?.look_alikes.map((one) => one.name.label) ?? [],
      threatened: answer.threatened,
      names: answer.names.map((one) => one.label),
      probabilities: answer.names.map((one) => one.probability),
      date: known.date ?? null,
      lat,
      lon,
      site: known.site ?? null,
    })}\n`;
  }).join("");
}

/** @param {any} book */
const aboutAnswers = (book) =>
  JSON.stringify({ fieldmark_answers: 1, model: book.model, kind: "photo", simulated: book.simulated, created: new Date().toISOString(), remarks: [], root: ".", taxa: book.taxa });

/**
 * Everything in one archive.
 * @param {Find[]} finds
 * @param {any} book
 * @returns {Promise<Blob>}
 */
export async function archive(finds, book) {
  const text = new TextEncoder();
  /** @type {[string, Uint8Array][]} */
  const files = [
    ["darwin-core.csv", text.encode(darwinCore(finds, book))],
    ["checked.csv", text.encode(checkedTable(finds))],
    ["answers.json", text.encode(aboutAnswers(book))],
    ["answers.jsonl", text.encode(answerLines(finds))],
  ];
  for (const find of finds) {
    const names = filesOf(find);
    for (const [number, photo] of find.photos.entries()) files.push([names[number], new Uint8Array(await photo.arrayBuffer())]);
  }
  return zipped(files);
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

/** @param {Uint8Array} bytes */
function checksum(bytes) {
  let value = 0xffffffff;
  for (let at = 0; at < bytes.length; at++) value = TABLE[(value ^ bytes[at]) & 0xff] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

/**
 * A ZIP archive of files as they are: photos are compressed already.
 * @param {[string, Uint8Array][]} files
 * @returns {Blob}
 */
export function zipped(files) {
  /** @type {BlobPart[]} */
  const parts = [];
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const listed = [];
  let offset = 0;
  for (const [name, content] of files) {
    const named = new TextEncoder().encode(name);
    const [sum, size] = [checksum(content), content.length];
    const head = numbers([[4, 0x04034b50], [2, 20], [2, 0x0800], [2, 0], [2, 0], [2, 0x21], [4, sum], [4, size], [4, size], [2, named.length], [2, 0]]);
    listed.push(
      numbers([[4, 0x02014b50], [2, 20], [2, 20], [2, 0x0800], [2, 0], [2, 0], [2, 0x21], [4, sum], [4, size], [4, size], [2, named.length], [2, 0], [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]]),
      named,
    );
    parts.push(head, named, /** @type {Uint8Array<ArrayBuffer>} */ (content));
    offset += head.length + named.length + size;
  }
  const size = listed.reduce((sum, one) => sum + one.length, 0);
  const end = numbers([[4, 0x06054b50], [2, 0], [2, 0], [2, files.length], [2, files.length], [4, size], [4, offset], [2, 0]]);
  return new Blob([...parts, ...listed, end], { type: "application/zip" });
}

/** Numbers of two and four bytes, one after the other. @param {[number, number][]} fields @returns {Uint8Array<ArrayBuffer>} */
function numbers(fields) {
  const made = new DataView(new ArrayBuffer(fields.reduce((sum, [bytes]) => sum + bytes, 0)));
  let at = 0;
  for (const [bytes, value] of fields) {
    if (bytes === 4) made.setUint32(at, value, true);
    else made.setUint16(at, value, true);
    at += bytes;
  }
  return new Uint8Array(made.buffer);
}
