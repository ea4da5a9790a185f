// Sends large files of the forms that submit a run or try out a program in parts, so that a lost connection or a reload costs nothing.
// Small files go with the form as it is, and so do all where this script does not run.
import { Sha256 } from "./sha256.js";

const form = document.getElementById("hand-in");
const element = (id) => document.getElementById(id);
const [area, bar, note, stopping] = ["sending", "sent", "sending-note", "stop"].map(element);
const [refusal, unfinished] = ["refusal", "unfinished"].map(element);
const { uploads, done, partsFrom, finish } = form.dataset;
const FIELDS = ["title", "method", "external", "external_note", "external_found"].filter((name) => form.elements[name]);
const AGAIN = new Set([408, 500, 502, 503, 504]);
const [PIECE, PART_MOST, REST_MOST_S, ANSWER_S] = [4 * 2 ** 20, 16 * 2 ** 20, 30, 600];
const button = form.querySelector("button.button");
const kept = `fieldmark ${done}`;

class Refused extends Error {
  constructor(sentence, problems = []) {
    super(sentence);
    this.problems = problems;
  }
}

class Sender {
  constructor(file) {
    this.file = file;
    this.stop = new AbortController();
  }

  async send() {
    const sha256 = await this.read();
    const upload = await this.begin(sha256);
    await this.parts(upload);
    say("Uploaded; checking …", this.file.size, this.file.size);
    const fields = new FormData();
    const given = new FormData(form);
    for (const name of FIELDS) fields.set(name, given.get(name) || "");
    const answer = await this.call("POST", `${uploads}/${upload.id}/${finish}`, { body: fields });
    return (await this.told(answer)).id;
  }

  async read() {
    const sha = new Sha256();
    for (let start = 0; start < this.file.size; start += PIECE) {
      this.stop.signal.throwIfAborted();
      try {
        sha.update(await this.file.slice(start, start + PIECE).arrayBuffer());
      } catch {
        throw new Refused("The file cannot be read, or has changed. Choose it again.");
      }
      say(`Reading the file: ${share(start + PIECE, this.file.size)}`, Math.min(start + PIECE, this.file.size), this.file.size);
    }
    return sha.hex();
  }

  async begin(sha256) {
    const listed = await this.told(await this.call("GET", uploads));
    const there = listed.find((one) => one.sha256 === sha256 && one.size === this.file.size);
    if (there) return there;
    const body = new FormData();
    for (const [name, value] of Object.entries({ size: this.file.size, sha256, filename: this.file.name })) body.set(name, value);
    return this.told(await this.call("POST", uploads, { body }));
  }

  async parts(upload) {
    const [path, size, most] = [`${uploads}/${upload.id}`, this.file.size, Math.min(upload.part, PART_MOST)];
    let [received, failed] = [upload.received, 0];
    while (received < size) {
      say(`Sending: ${share(received, size)}`, received, size);
      const headers = { "upload-offset": String(received), "content-type": "application/offset+octet-stream" };
      const answer = await this.attempt("PATCH", path, { headers, body: this.file.slice(received, received + most) });
      const offset = answer && [204, 409].includes(answer.status) ? answer.headers.get("upload-offset") : null;
      if (offset !== null) {
        failed = Number(offset) > received ? 0 : failed + 1;
        received = Number(offset);
      } else if (!answer || AGAIN.has(answer.status) || answer.status === 429) {
        failed += 1;
        await this.rest(failed, answer, received);
        received = (await this.told(await this.call("GET", path))).received;
      } else {
        await this.told(answer);
      }
    }
  }

  // One call, again while the connection fails.
  async call(method, path, options = {}) {
    for (let failed = 1; ; failed += 1) {
      const answer = await this.attempt(method, path, options);
      if (answer && !AGAIN.has(answer.status)) return answer;
      await this.rest(failed, answer);
    }
  }

  async attempt(method, path, { headers = {}, body } = {}) {
    this.stop.signal.throwIfAborted();
    const tried = new AbortController();
    const end = () => tried.abort();
    const timer = setTimeout(end, 1000 * ANSWER_S);
    this.stop.signal.addEventListener("abort", end);
    const sent = { ...headers, "x-form-token": form.elements.csrf.value };
    try {
      return await fetch(path, { method, headers: sent, body, signal: tried.signal });
    } catch {
      this.stop.signal.throwIfAborted();
      return null;
    } finally {
      clearTimeout(timer);
      this.stop.signal.removeEventListener("abort", end);
    }
  }

  async told(answer) {
    const said = await answer.json().catch(() => ({}));
    if (answer.ok) return said;
    if (answer.status === 401 || answer.status === 403) {
      throw new Refused("You are signed out, or this page has expired. Open it again and choose the same file: what was uploaded is kept for a day.");
    }
    throw new Refused(said.error || `The server answered ${answer.status}.`, said.problems || []);
  }

  // Waits before another attempt, twice as long each time, and no longer than the connection is away.
  async rest(failed, answer, received) {
    const so_far = received === undefined ? "" : ` after ${share(received, this.file.size)}`;
    note.textContent = answer
      ? `The server is busy. Retrying automatically${so_far}.`
      : `The connection is lost${so_far}. Retrying automatically; or come back within a day and choose the same file.`;
    const asked = Number(answer?.headers.get("retry-after")) || 2 ** (failed - 1);
    await new Promise((resolve) => {
      const over = () => { clearTimeout(timer); removeEventListener("online", over); resolve(); };
      const timer = setTimeout(over, 1000 * Math.min(asked, REST_MOST_S));
      addEventListener("online", over);
      this.stop.signal.addEventListener("abort", over, { once: true });
    });
  }
}

const share = (part, size) => `${Math.floor(Math.min(part, size) / 2 ** 20)} of ${Math.ceil(size / 2 ** 20)} MiB`;

function say(text, value, most) {
  note.textContent = text;
  [bar.max, bar.value] = [most, value];
}

function refuse(error) {
  const first = document.createElement("p");
  const strong = document.createElement("strong");
  strong.textContent = form.dataset.refused;
  first.append(strong, ` ${error.message}`);
  const list = document.createElement("ul");
  list.className = "problems";
  for (const problem of error.problems) {
    const line = document.createElement("li");
    if (problem.line) {
      const where = document.createElement("span");
      where.className = "where";
      where.textContent = `line ${problem.line}`;
      line.append(where, " ");
    }
    line.append(problem.text);
    list.append(line);
  }
  refusal.replaceChildren(first, ...(error.problems.length ? [list] : []));
  refusal.hidden = false;
  refusal.scrollIntoView({ block: "center" });
}

async function start(file) {
  const sender = new Sender(file);
  const stop = () => sender.stop.abort();
  refusal.hidden = unfinished.hidden = true;
  area.hidden = false;
  button.disabled = true;
  stopping.addEventListener("click", stop);
  sessionStorage.setItem(kept, JSON.stringify(Object.fromEntries(FIELDS.map((name) => [name, form.elements[name].value]))));
  try {
    const number = await sender.send();
    sessionStorage.removeItem(kept);
    location.assign(`${done}${number}?done=handed-in`);
    return;
  } catch (error) {
    if (error instanceof Refused) refuse(error);
    else if (!sender.stop.signal.aborted) refuse(new Refused("The file could not be sent. Load the page again, and choose the same file."));
  }
  stopping.removeEventListener("click", stop);
  area.hidden = true;
  button.disabled = false;
  await remember();
}

// Says what is there of earlier attempts, and fills the fields in as they were.
async function remember() {
  const headers = { "x-form-token": form.elements.csrf.value };
  const answer = await fetch(uploads, { headers }).catch(() => null);
  const there = answer?.ok ? (await answer.json()).filter((one) => one.received) : [];
  unfinished.replaceChildren(...there.map((upload) => {
    const line = document.createElement("p");
    const drop = document.createElement("button");
    [drop.type, drop.className, drop.textContent] = ["button", "button quiet small", "Throw away"];
    drop.addEventListener("click", async () => {
      await fetch(`${uploads}/${upload.id}`, { method: "DELETE", headers }).catch(() => null);
      await remember();
    });
    line.append(`${share(upload.received, upload.size)} of ${upload.filename} are uploaded. Choose and submit the same file to continue. `, drop);
    return line;
  }));
  unfinished.hidden = !there.length;
  const before = JSON.parse(sessionStorage.getItem(kept) || "null");
  if (there.length && before) {
    for (const name of FIELDS) if (!form.elements[name].value) form.elements[name].value = before[name] || "";
  }
}

// Fills in what the provenance of a run records about external data; the form can still be changed.
async function fillIn(file) {
  const said = element("provenance-note");
  let found;
  try {
    found = JSON.parse(await file.text()).external_data;
  } catch {
    found = undefined;
  }
  if (!Array.isArray(found)) {
    said.textContent = `${file.name} says nothing about external data. Expected the run.json that lies beside run.csv.`;
    return;
  }
  const told = found.join("; ").slice(0, 1000);
  form.elements.external_found.value = form.elements.external_note.value = told;
  form.elements.external.value = found.length ? "yes" : "no";
  said.textContent = found.length ? `${file.name} records: ${told}` : `${file.name} records no external data.`;
}

const provenance = element("provenance");
if (provenance) {
  provenance.closest(".script-only").hidden = false;
  provenance.addEventListener("change", () => provenance.files[0] && fillIn(provenance.files[0]));
}

form.addEventListener("submit", (event) => {
  const file = form.elements.run.files[0];
  if (!file || file.size < Number(partsFrom)) return;
  event.preventDefault();
  start(file);
});
remember();
