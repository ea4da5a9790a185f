/** The files of a guide, read and checked: a file that is missing or of another make is told in a sentence. */

const FORMAT = 1;
/** @type {Record<string, any>} */
const KINDS = { float64: Float64Array, float32: Float32Array, uint8: Uint8Array };

/** A guide that cannot be opened; the message says why and what to do. */
export class GuideError extends Error {}

/** @param {string} name @returns {Promise<Response>} */
async function fetched(name) {
  let response;
  try {
    response = await fetch(new URL(name, import.meta.url));
  } catch {
    throw new GuideError(`${name} could not be loaded: open the guide once with a network, so that it is kept on this device.`);
  }
  if (!response.ok) throw new GuideError(`${name} is missing (${response.status}): export the guide again, and put all of its files on the server.`);
  return response;
}

/** @param {string} name */
export async function bytesOf(name) {
  return (await fetched(name)).arrayBuffer();
}

/** @param {string} name @returns {Promise<any>} */
export async function dataOf(name) {
  const response = await fetched(name);
  try {
    return await response.json();
  } catch {
    throw new GuideError(`${name} is damaged: export the guide again.`);
  }
}

/**
 * Puts arrays in place of what refers to them.
 * @param {any} value
 * @param {ArrayBuffer} arrays
 * @returns {any}
 */
export function resolved(value, arrays) {
  if (Array.isArray(value)) return value.map((one) => resolved(one, arrays));
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value.array)) {
    const [offset, length, kind] = value.array;
    const Kind = KINDS[kind];
    if (!Kind || offset + length * Kind.BYTES_PER_ELEMENT > arrays.byteLength) throw new GuideError("arrays.bin is damaged: export the guide again.");
    return new Kind(arrays, offset, length);
  }
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, resolved(one, arrays)]));
}

/** What the guide knows besides its network. @returns {Promise<any>} */
export async function openBook() {
  const data = await dataOf("../guide.json");
  if (data?.fieldmark_guide_app !== FORMAT) {
    throw new GuideError(`guide.json is of format ${data?.fieldmark_guide_app ?? "unknown"}, and this page reads format ${FORMAT}: export the guide again.`);
  }
  return resolved(data, await bytesOf("../arrays.bin"));
}
