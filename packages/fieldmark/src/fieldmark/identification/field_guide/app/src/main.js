/** The page: asks for photos, shows the answer, keeps the list of finds. */

import { bytesOf, openBook } from "./book.js";
import { standingAdvice } from "./dangers.js";
import { byId, element, listed, picture, save } from "./dom.js";
import { taken } from "./exif.js";
import { archive, checkedTable, darwinCore } from "./exports.js";
import { allFinds, keep, remove, removeAll } from "./finds.js";
import { confidenceWord, fullName, headline, percent, sentences } from "./text.js";

/** @typedef {import("./answers.js").Answer} Answer */
/** @typedef {import("./contexts.js").Known} Known */
/** @typedef {import("./finds.js").Find} Find */

const MOST_PHOTOS = 12;
const FIELDS = ["date", "lat", "lon", "country", "habitat", "substrate"];
const threads = new URL(location.href).searchParams.get("threads");

/** @type {Blob[]} */
let photos = [];
/** @type {{answer: Answer, known: Known, photos: Blob[]}|null} */
let answered = null;
/** @type {any} */
let book = null;
/** @type {ArrayBuffer|null} */
let pictures = null;

// --- the worker -------------------------------------------------------------------------------------------------------

const worker = new Worker(new URL(`./worker.js${threads ? `?threads=${threads}` : ""}`, import.meta.url), { type: "module" });
/** @type {Map<number, (reply: any) => void>} */
const waiting = new Map();
let asked = 0;
worker.onmessage = (/** @type {MessageEvent} */ event) => {
  waiting.get(event.data.id)?.(event.data);
  waiting.delete(event.data.id);
};
worker.onerror = () => problem("The identification did not start. Reload the page; if that does not help, export the guide again.");

/** @param {{photos: ArrayBuffer[], known: Known}|null} question @returns {Promise<any>} */
function ask(question) {
  return new Promise((resolve) => {
    waiting.set(++asked, resolve);
    worker.postMessage({ id: asked, question });
  });
}

// --- what is asked ----------------------------------------------------------------------------------------------------

/** @param {string} sentence */
function problem(sentence) {
  byId("problem").textContent = sentence;
  byId("problem").hidden = sentence === "";
}

/** What a person wrote about where and when. @returns {Known} */
function written() {
  /** @type {Record<string, string|number>} */
  const known = {};
  for (const name of FIELDS) {
    const value = byId(name) instanceof HTMLInputElement ? /** @type {HTMLInputElement} */ (byId(name)).value.trim() : "";
    if (value === "") continue;
    if (name !== "lat" && name !== "lon") known[name] = value;
    else {
      const degrees = Number(value.replace(",", "."));
      const most = name === "lat" ? 90 : 180;
      if (!Number.isFinite(degrees) || Math.abs(degrees) > most) throw new Error(`A ${name === "lat" ? "latitude" : "longitude"} lies between -${most} and ${most} degrees: found ${value}.`);
      known[name] = degrees;
    }
  }
  if ("lat" in known !== "lon" in known) throw new Error("A place needs both latitude and longitude.");
  return known;
}

/** @param {Known} known @param {ArrayBuffer[]} buffers @returns {Known} */
function withNotes(known, buffers) {
  if (!(/** @type {HTMLInputElement} */ (byId("exif")).checked)) return known;
  const noted = buffers.map(taken);
  const dated = noted.find((one) => one.date);
  const placed = noted.find((one) => one.lat !== undefined);
  return { ...(dated ? { date: dated.date } : {}), ...(placed ? { lat: placed.lat, lon: placed.lon } : {}), ...known };
}

async function showPreviews() {
  const shown = await Promise.all(photos.map((photo, number) => picture(photo, `Your photo ${number + 1}`, 160)));
  byId("previews").replaceChildren(...shown.map((one) => element("li", {}, one)));
}

/** @param {Event} event */
async function choose(event) {
  const input = /** @type {HTMLInputElement} */ (event.target);
  photos = [...photos, ...(input.files ?? [])];
  problem(photos.length > MOST_PHOTOS ? `At most ${MOST_PHOTOS} photos at once; the first ${MOST_PHOTOS} are used.` : "");
  photos = photos.slice(0, MOST_PHOTOS);
  input.value = "";
  await showPreviews();
}

async function identify() {
  problem("");
  byId("answer").hidden = true;
  if (!photos.length) return problem("Choose at least one photo.");
  const button = /** @type {HTMLButtonElement} */ (byId("go"));
  button.disabled = true;
  byId("status").textContent = "Identifying …";
  try {
    const buffers = await Promise.all(photos.map((photo) => photo.arrayBuffer()));
    const known = withNotes(written(), buffers);
    const reply = await ask({ photos: buffers, known });
    if (reply.error) return problem(reply.error);
    answered = { answer: reply.answer, known, photos };
    await showAnswer(reply.answer);
    byId("status").textContent = `Answered on this device in ${(reply.milliseconds / 1000).toFixed(1)} s.`;
    return undefined;
  } catch (error) {
    return problem(error instanceof Error ? error.message : String(error));
  } finally {
    button.disabled = false;
    if (!answered || byId("answer").hidden) byId("status").textContent = "";
  }
}

// --- the answer -------------------------------------------------------------------------------------------------------

/** A training photo, where the guide holds it as a picture. @param {number} row @param {string} name */
async function trainingPhoto(row, name) {
  const place = book.pictures.find((/** @type {number[]} */ one) => one[0] === row);
  if (!place) return [];
  pictures ??= await bytesOf("../pictures.bin");
  return [await picture(new Blob([pictures.slice(place[1], place[2])], { type: "image/webp" }), `A training photo of ${name}`)];
}

/** @param {Answer} answer */
async function showDanger(answer) {
  const { danger } = answer;
  if (!danger) {
    const advice = standingAdvice(book);
    return byId("danger").replaceChildren(...(advice.length ? [element("p", { class: "note" }, advice.join(" "))] : []));
  }
  if (danger.brief) return byId("danger").replaceChildren(element("p", { class: "notice warn" }, danger.because.join(" ")));
  const alike = await Promise.all(danger.look_alikes.map(async (one) => {
    const shown = (await Promise.all(one.rows.map((row) => trainingPhoto(row, fullName(one.name))))).flat();
    return element("li", {}, ...shown, element("span", {}, `${fullName(one.name)}, ${percent(one.name.probability)}`));
  }));
  const notice = element("section", { class: "notice bad danger", role: "alert" }, element("h3", {}, "Be careful"));
  notice.append(element("ul", {}, ...danger.because.map((line) => element("li", {}, line))));
  if (alike.length) notice.append(element("p", {}, "It could be:"), element("ul", { class: "pictures" }, ...alike));
  notice.append(element("ul", {}, ...danger.advice.map((line) => element("li", {}, line))));
  return byId("danger").replaceChildren(notice);
}

/** @param {Answer} answer */
async function showAnswer(answer) {
  byId("headline").textContent = headline(answer);
  await showDanger(answer);
  byId("names").replaceChildren(...answer.names.map((one) => {
    const name = element("th", { scope: "row" }, fullName(one));
    if (one.poisonous) name.append(" ", element("span", { class: "tag warn" }, "poisonous or venomous"));
    return element("tr", {}, name, element("td", { class: "num" }, `${percent(one.probability)} `, element("small", {}, confidenceWord(one.probability))));
  }));
  const near = await Promise.all(answer.nearest.map(async (one) =>
    element("li", {}, ...(await trainingPhoto(one.row, one.shown)), element("span", {}, `${one.shown} `, element("small", {}, `likeness ${one.likeness.toFixed(2)}`)))));
  byId("nearest").replaceChildren(...near);
  byId("nearest-part").hidden = !near.length;
  listed(byId("sentences"), sentences(answer));
  listed(byId("next"), answer.next_photos);
  byId("next-part").hidden = !answer.next_photos.length;
  byId("kept").textContent = "";
  /** @type {HTMLButtonElement} */ (byId("keep")).disabled = false;
  byId("answer").hidden = false;
  byId("answer").focus();
}

// --- finds ------------------------------------------------------------------------------------------------------------

async function keepAnswer() {
  if (!answered) return;
  const when = new Date().toISOString();
  const id = `find-${when.replace(/[^0-9]/g, "").slice(0, 14)}-${crypto.randomUUID().slice(0, 4)}`;
  try {
    await keep({ id, when, checked: "", ...answered });
  } catch {
    return problem("This find could not be saved: the device is full, or the browser stores nothing (private window).");
  }
  /** @type {HTMLButtonElement} */ (byId("keep")).disabled = true;
  byId("kept").textContent = "Kept on this device.";
  return showFinds();
}

/** @param {Find} find */
async function findItem(find) {
  const where = [find.known.date, find.known.lat === undefined ? "" : `${find.known.lat}, ${find.known.lon}`].filter(Boolean).join(" · ");
  const input = /** @type {HTMLInputElement} */ (element("input", { id: `is-${find.id}`, list: "all-names", autocomplete: "off" }));
  input.value = find.checked;
  const told = element("span", { class: "note", role: "status" });
  const say = element("button", { class: "button small", type: "button" }, "Save");
  say.addEventListener("click", async () => {
    const label = labelOf(input.value);
    if (label === null) {
      told.textContent = `The guide knows no ${input.value}: choose a name of its list, or leave it empty.`;
      return;
    }
    await keep({ ...find, checked: label });
    find.checked = label;
    told.textContent = label ? "Saved." : "Your identification was removed.";
  });
  const drop = element("button", { class: "button small quiet", type: "button" }, "Delete");
  drop.addEventListener("click", async () => {
    await remove(find.id);
    await showFinds();
  });
  return element("li", {},
    element("h3", {}, headline(find.answer)),
    ...(where ? [element("p", { class: "note" }, where)] : []),
    element("div", { class: "pictures" }, await picture(find.photos[0], "The photo of this find", 160)),
    element("div", { class: "row" }, element("div", { class: "field" }, element("label", { for: `is-${find.id}` }, "I say it is"), input), say, drop, told));
}

/** The label that a person means; null for a name that the guide does not know. @param {string} text */
function labelOf(text) {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return "";
  const found = book.labels.find((/** @type {any} */ one) => [one.label, one.species, one.common_name].some((name) => name?.toLowerCase() === wanted));
  return found?.label ?? null;
}

async function showFinds() {
  const finds = await allFinds();
  byId("finds-list").replaceChildren(...(await Promise.all(finds.map(findItem))));
  byId("finds-empty").hidden = finds.length > 0;
  byId("finds-tools").hidden = !finds.length;
  byId("delete-all").hidden = !finds.length;
}

async function deleteAll() {
  if (!confirm("Delete all finds with their photos from this device?")) return;
  await removeAll();
  await showFinds();
}

// --- the beginning ----------------------------------------------------------------------------------------------------

async function register() {
  if (!("serviceWorker" in navigator)) {
    byId("offline").textContent = "This browser cannot store the guide: it needs a network here.";
    return;
  }
  try {
    await navigator.serviceWorker.register(new URL("../sw.js", import.meta.url), { scope: new URL("../", import.meta.url).pathname });
    await navigator.serviceWorker.ready;
    byId("offline").textContent = "Stored on this device: it works offline.";
  } catch {
    byId("offline").textContent = "It could not be stored on this device; that needs a secure address (https) and free space.";
  }
}

async function begin() {
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    identify();
  });
  byId("gallery").addEventListener("change", choose);
  byId("camera").addEventListener("change", choose);
  byId("clear").addEventListener("click", () => {
    photos = [];
    byId("answer").hidden = true;
    problem("");
    showPreviews();
  });
  byId("keep").addEventListener("click", keepAnswer);
  byId("delete-all").addEventListener("click", deleteAll);
  byId("save-archive").addEventListener("click", async () => save(await archive(await allFinds(), book), "finds.zip"));
  byId("save-darwin-core").addEventListener("click", async () => save(new Blob([darwinCore(await allFinds(), book)], { type: "text/csv" }), "darwin-core.csv"));
  byId("save-checked").addEventListener("click", async () => save(new Blob([checkedTable(await allFinds())], { type: "text/csv" }), "checked.csv"));
  try {
    book = await openBook();
  } catch (error) {
    return problem(error instanceof Error ? error.message : String(error));
  }
  document.title = book.title;
  byId("title").textContent = book.title;
  byId("made").textContent = `Fieldmark ${book.version}`;
  byId("knows").textContent = `It knows ${book.labels.length.toLocaleString("en")} names. Photos stay on this device.`;
  byId("simulated").hidden = !book.simulated;
  byId("all-names").replaceChildren(...book.labels.map((/** @type {any} */ one) => element("option", { value: one.label }, one.common_name ?? one.species ?? one.label)));
  await showFinds().catch(() => problem("The list of finds cannot be opened: the browser stores nothing (private window)."));
  register();
  const reply = await ask(null);
  if (reply.error) return problem(reply.error);
  document.documentElement.dataset.ready = "yes";
  return undefined;
}

begin().catch((error) => problem(`The guide is damaged (${error instanceof Error ? error.message : error}): export the guide again.`));
