/** Small helpers for pages. Texts are always set as texts, never as markup. */

/** An element of the page by its id. @template {HTMLElement} [T=HTMLElement] @param {string} id @returns {T} */
export const byId = (id) => /** @type {T} */ (document.getElementById(id));

/**
 * A new element.
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {(string|Node)[]} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** @param {HTMLElement} list @param {string[]} lines */
export const listed = (list, lines) => list.replaceChildren(...lines.map((line) => element("li", {}, line)));

/**
 * A photo as a small picture, with words for those who do not see it.
 * @param {Blob} photo
 * @param {string} words
 * @param {number} most The longer side in pixels.
 * @returns {Promise<HTMLElement>}
 */
export async function picture(photo, words, most = 320) {
  const canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { role: "img", "aria-label": words }));
  try {
    const bitmap = await createImageBitmap(photo);
    const scale = Math.min(1, most / Math.max(bitmap.width, bitmap.height));
    canvas.width = Math.max(1, Math.round(bitmap.width * scale));
    canvas.height = Math.max(1, Math.round(bitmap.height * scale));
    canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    bitmap.close();
    return canvas;
  } catch {
    return element("span", { class: "note" }, `${words}: it cannot be shown.`);
  }
}

/** Hands a file to the person. @param {Blob} content @param {string} name */
export function save(content, name) {
  const address = URL.createObjectURL(content);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
