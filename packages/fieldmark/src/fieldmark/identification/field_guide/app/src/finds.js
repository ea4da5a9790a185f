/** The list of finds, which lies on this device and nowhere else. */

/** @typedef {import("./answers.js").Answer} Answer */
/** @typedef {import("./contexts.js").Known} Known */
/**
 * @typedef {object} Find
 * @property {string} id
 * @property {string} when When it was asked about, in UTC.
 * @property {Blob[]} photos As they were chosen.
 * @property {Answer} answer
 * @property {Known} known
 * @property {string} checked What a person says that it is: a label, or empty where nobody has said.
 */

const NAME = "fieldmark-finds", STORE = "finds";

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
const settled = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Guides of one origin have lists of their own, by the folder that they lie in. @returns {Promise<IDBDatabase>} */
function database() {
  const request = indexedDB.open(`${NAME} ${new URL(".", location.href).pathname}`, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
  return settled(request);
}

/** @template T @param {IDBTransactionMode} mode @param {(store: IDBObjectStore) => IDBRequest<T>} ask @returns {Promise<T>} */
async function inStore(mode, ask) {
  const opened = await database();
  try {
    return await settled(ask(opened.transaction(STORE, mode).objectStore(STORE)));
  } finally {
    opened.close();
  }
}

/** All finds, the latest first. @returns {Promise<Find[]>} */
export async function allFinds() {
  const found = /** @type {Find[]} */ (await inStore("readonly", (store) => store.getAll()));
  return found.sort((a, b) => b.when.localeCompare(a.when));
}

/** @param {Find} find */
export const keep = (find) => inStore("readwrite", (store) => store.put(find));
/** @param {string} id */
export const remove = (id) => inStore("readwrite", (store) => store.delete(id));
export const removeAll = () => inStore("readwrite", (store) => store.clear());
