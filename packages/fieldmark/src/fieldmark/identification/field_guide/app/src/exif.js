/** When and where a photo was taken, by what the camera wrote into a JPEG; read only where a person asks for it. */

/** @typedef {{date?: string, lat?: number, lon?: number}} Taken */

const ORIENTATION = 0x0112, DATE_TIME = 0x0132, EXIF = 0x8769, GPS = 0x8825, ORIGINAL = 0x9003;
const LAT_REF = 1, LAT = 2, LON_REF = 3, LON = 4;

/** The segment of a JPEG that holds notes of the camera. @param {DataView} view @returns {DataView|null} */
function segment(view) {
  let at = 2;
  while (at + 10 < view.byteLength && view.getUint8(at) === 0xff) {
    const length = view.getUint16(at + 2);
    if (view.getUint8(at + 1) === 0xe1 && view.getUint32(at + 4) === 0x45786966) {
      return new DataView(view.buffer, view.byteOffset + at + 10, Math.min(length - 8, view.byteLength - at - 10));
    }
    if (view.getUint8(at + 1) === 0xda) return null;
    at += 2 + length;
  }
  return null;
}

/**
 * The entries of one directory.
 * @param {DataView} tiff
 * @param {number} offset
 * @param {boolean} little
 * @returns {Map<number, number|string|number[]>}
 */
function entries(tiff, offset, little) {
  const found = new Map();
  const number = tiff.getUint16(offset, little);
  for (let entry = 0; entry < number; entry++) {
    const at = offset + 2 + 12 * entry;
    const [tag, kind, count] = [tiff.getUint16(at, little), tiff.getUint16(at + 2, little), tiff.getUint32(at + 4, little)];
    if (kind === 2) {
      const from = count > 4 ? tiff.getUint32(at + 8, little) : at + 8;
      found.set(tag, Array.from({ length: Math.min(count, 64) }, (_, place) => String.fromCharCode(tiff.getUint8(from + place))).join("").replace(/\0.*$/s, ""));
    } else if (kind === 5) {
      const from = tiff.getUint32(at + 8, little);
      found.set(tag, Array.from({ length: Math.min(count, 3) }, (_, place) => tiff.getUint32(from + 8 * place, little) / tiff.getUint32(from + 8 * place + 4, little)));
    } else if (kind === 4) found.set(tag, tiff.getUint32(at + 8, little));
    else if (kind === 3) found.set(tag, tiff.getUint16(at + 8, little));
  }
  return found;
}

/** @param {unknown} parts @param {unknown} reference @param {string} negative @param {number} most */
function degrees(parts, reference, negative, most) {
  if (!Array.isArray(parts) || parts.length !== 3) return null;
  const angle = parts[0] + parts[1] / 60 + parts[2] / 3600;
  if (!Number.isFinite(angle) || angle > most) return null;
  return Math.round((String(reference).trim().toUpperCase().startsWith(negative) ? -angle : angle) * 1e6) / 1e6;
}

/** The notes of a JPEG; null where there are none. @param {ArrayBuffer} buffer */
function notes(buffer) {
  const view = new DataView(buffer);
  const tiff = view.getUint16(0) === 0xffd8 ? segment(view) : null;
  if (!tiff) return null;
  const little = tiff.getUint16(0) === 0x4949;
  return { tiff, little, main: entries(tiff, tiff.getUint32(4, little), little) };
}

/** How a JPEG must be turned to be upright, from 1 (not at all) to 8. @param {ArrayBuffer} buffer */
export function orientation(buffer) {
  try {
    const found = Number(notes(buffer)?.main.get(ORIENTATION) ?? 1);
    return found >= 1 && found <= 8 ? found : 1;
  } catch {
    return 1;
  }
}

/** @param {ArrayBuffer} buffer @returns {Taken} */
export function taken(buffer) {
  try {
    const found = notes(buffer);
    if (!found) return {};
    const { tiff, little, main } = found;
    const details = typeof main.get(EXIF) === "number" ? entries(tiff, Number(main.get(EXIF)), little) : new Map();
    const place = typeof main.get(GPS) === "number" ? entries(tiff, Number(main.get(GPS)), little) : new Map();
    /** @type {Taken} */
    const noted = {};
    const moment = /^(\d{4}):(\d\d):(\d\d) \d\d:\d\d:\d\d/.exec(String(details.get(ORIGINAL) ?? main.get(DATE_TIME) ?? ""));
    if (moment && Number(moment[1]) >= 1990 && !Number.isNaN(Date.parse(`${moment[1]}-${moment[2]}-${moment[3]}`))) noted.date = `${moment[1]}-${moment[2]}-${moment[3]}`;
    const lat = degrees(place.get(LAT), place.get(LAT_REF), "S", 90);
    const lon = degrees(place.get(LON), place.get(LON_REF), "W", 180);
    if (lat !== null && lon !== null && (lat !== 0 || lon !== 0)) Object.assign(noted, { lat, lon });
    return noted;
  } catch {
    return {}; // notes of cameras are damaged in more ways than can be listed, and nothing depends on them
  }
}
