/** From the bytes of a photo to the squares that the network takes (`fieldmark.features.photos`). */

import { orientation } from "./exif.js";
import { BOX, reduced, resized } from "./resampling.js";

/** @typedef {import("./resampling.js").Picture} Picture */
/** @typedef {{size_px: number, side_px: number, resize: "cut"|"squash", place: [number, number], mirrored: boolean}} View */
/** @typedef {{side_px: number, eval_crop: "squash"|"center", eval_share: number}} Squashed */
/** @typedef {{views: View[], squashed: Squashed|null, across_first: string}} Reading */
/** @typedef {{data: Uint8Array, dims: number[], boxes: Float32Array|null}} Squares */

/** @typedef {{picture: Picture, jpeg: boolean, turned: number}} Photo An upright picture, and how the file had to be turned. */

/** A photo that cannot be answered; the message says what is wrong with it. */
export class PhotoError extends Error {}

/** So many pixels are decoded at most. */
const MOST_PIXELS = 100_000_000;
const MOST_BYTES = 100_000_000;
const PLAIN_PX = 32;
const PLAIN_SPREAD = 3;
const MICROSCOPY = { side: 64, near: 60, background: 0.7, brightness: 85, contrast: 73, color: 23, allOne: 0.5 };

/** @param {Uint8Array} bytes */
const isJpeg = (bytes) => bytes[0] === 0xff && bytes[1] === 0xd8;

/**
 * A photo, decoded upright.
 * @param {ArrayBuffer} buffer
 * @returns {Promise<Photo>}
 */
export async function decoded(buffer) {
  const bytes = new Uint8Array(buffer);
  if (bytes.length === 0) throw new PhotoError("This is an empty file.");
  if (bytes.length > MOST_BYTES) throw new PhotoError("This file is larger than 100 MB: choose a photo.");
  let bitmap;
  try {
    bitmap = await createImageBitmap(new Blob([bytes]), { imageOrientation: "from-image", premultiplyAlpha: "none", colorSpaceConversion: "none" });
  } catch {
    throw new PhotoError("This browser cannot read the file as a photo: save it as JPEG, PNG or WebP.");
  }
  const { width, height } = bitmap;
  if (width * height > MOST_PIXELS) throw new PhotoError(`This picture has ${width} x ${height} pixels; at most 100 million can be read.`);
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true, alpha: true });
  if (context === null) throw new PhotoError("This device has no memory left for the photo.");
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  const shown = context.getImageData(0, 0, width, height).data;
  const data = new Uint8Array(width * height * 3);
  for (let from = 0, to = 0; from < shown.length; from += 4, to += 3) {
    data[to] = shown[from];
    data[to + 1] = shown[from + 1];
    data[to + 2] = shown[from + 2];
  }
  return { picture: { width, height, data }, jpeg: isJpeg(bytes), turned: isJpeg(bytes) ? orientation(buffer) : 1 };
}

/**
 * A JPEG at a half, a quarter or an eighth of its size, as decoders can give it, as long as enough pixels remain. Blocks
 * begin at the corner of the file, which is not that of the upright picture.
 * @param {Photo} photo
 * @param {number} atLeast
 * @returns {Picture}
 */
function drafted({ picture, jpeg, turned }, atLeast) {
  if (!jpeg) return picture;
  const room = Math.min(Math.floor(picture.width / atLeast), Math.floor(picture.height / atLeast));
  const factor = [8, 4, 2].find((one) => room >= one);
  if (!factor) return picture;
  const back = { 6: 8, 8: 6 }[turned] ?? turned;
  return upright(reduced(upright(picture, back), factor, factor), turned);
}

/**
 * A picture turned and mirrored as EXIF says.
 * @param {Picture} picture
 * @param {number} turned
 * @returns {Picture}
 */
function upright(picture, turned) {
  if (turned === 1) return picture;
  const { width: wide, height: high } = picture;
  const [width, height] = turned > 4 ? [high, wide] : [wide, high];
  const data = new Uint8Array(width * height * 3);
  const across = [2, 3, 7, 8].includes(turned), down = [3, 4, 6, 7].includes(turned);
  for (let row = 0, to = 0; row < height; row++) {
    for (let column = 0; column < width; column++, to += 3) {
      const [x, y] = turned > 4 ? [row, column] : [column, row];
      const from = ((down ? high - 1 - y : y) * wide + (across ? wide - 1 - x : x)) * 3;
      data[to] = picture.data[from];
      data[to + 1] = picture.data[from + 1];
      data[to + 2] = picture.data[from + 2];
    }
  }
  return { width, height, data };
}

/** Rounds as Python does: halves to the even neighbor. @param {number} value */
function rounded(value) {
  const near = Math.round(value);
  return Math.abs(value % 1) === 0.5 && near % 2 !== 0 ? near - 1 : near;
}

/**
 * One view of a photo.
 * @param {Picture} picture
 * @param {View} view
 * @param {string} order
 */
function square(picture, view, order) {
  const { size_px: size, side_px: side } = view;
  /** @type {[number, number]} */
  let whole = [Math.max(size, side), Math.max(size, side)];
  if (view.resize === "cut") {
    const scale = side / Math.min(picture.width, picture.height);
    whole = [Math.max(size, rounded(picture.width * scale)), Math.max(size, rounded(picture.height * scale))];
  }
  const part = { left: Math.trunc((whole[0] - size) * view.place[0]), top: Math.trunc((whole[1] - size) * view.place[1]), width: size, height: size };
  const made = resized(picture, whole, { part, order, gap: true }).data;
  return view.mirrored ? mirrored(made, size) : made;
}

/** @param {Uint8Array|Uint8ClampedArray} data @param {number} size */
function mirrored(data, size) {
  const made = new Uint8Array(data.length);
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      const from = (row * size + column) * 3;
      made.set(data.subarray(from, from + 3), (row * size + size - 1 - column) * 3);
    }
  }
  return made;
}

/**
 * What the network takes of a photo, and the picture that small looks at it go by.
 * @param {Photo} photo
 * @param {Reading} reading
 * @returns {{squares: Squares, looked: Picture}}
 */
export function squaresOf(photo, reading) {
  if (reading.squashed) return squashed(photo, reading.squashed, reading.across_first);
  const size = reading.views[0].size_px;
  const data = new Uint8Array(reading.views.length * size * size * 3);
  let looked = photo.picture;
  reading.views.forEach((view, number) => {
    looked = drafted(photo, view.side_px);
    data.set(square(looked, view, reading.across_first), number * size * size * 3);
  });
  return { squares: { data, dims: [reading.views.length, size, size, 3], boxes: null }, looked };
}

/**
 * @param {Photo} photo
 * @param {Squashed} how
 * @param {string} order
 */
function squashed(photo, how, order) {
  const looked = drafted(photo, how.side_px);
  const data = new Uint8Array(resized(looked, [how.side_px, how.side_px], { order, gap: true }).data);
  const aspect = Math.fround(looked.width / looked.height);
  const whole = how.eval_crop === "squash";
  const width = how.eval_share * (whole ? 1 : Math.min(1, 1 / aspect));
  const height = how.eval_share * (whole ? 1 : Math.min(1, aspect));
  const left = 0.5 * (1 - width), top = 0.5 * (1 - height);
  const boxes = new Float32Array([left, top, left + width, top + height]);
  return { squares: { data, dims: [1, how.side_px, how.side_px, 3], boxes }, looked };
}

/** @param {number[]|Float64Array} values */
function spread(values) {
  let sum = 0, squares = 0;
  for (const value of values) sum += value;
  const mean = sum / values.length;
  for (const value of values) squares += (value - mean) ** 2;
  return Math.sqrt(squares / values.length);
}

/**
 * Gray values as Pillow takes them.
 * @param {Picture} picture
 * @returns {Picture}
 */
function gray(picture) {
  const data = new Uint8Array(picture.data.length);
  for (let at = 0; at < data.length; at += 3) {
    const light = (picture.data[at] * 19595 + picture.data[at + 1] * 38470 + picture.data[at + 2] * 7471 + 0x8000) >> 16;
    data[at] = data[at + 1] = data[at + 2] = light;
  }
  return { width: picture.width, height: picture.height, data };
}

/**
 * Whether a photo shows nothing but one color.
 * @param {Picture} picture
 */
export function isPlain(picture, below = PLAIN_SPREAD) {
  const small = resized(gray(picture), [PLAIN_PX, PLAIN_PX], { filter: BOX }).data;
  return spread(Float64Array.from({ length: PLAIN_PX * PLAIN_PX }, (_, number) => small[3 * number])) < below;
}

/** The value below which a share of sorted values lies, as NumPy interpolates. @param {Float64Array} sorted @param {number} share */
function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const low = Math.floor(place);
  return sorted[low] + (sorted[Math.min(low + 1, sorted.length - 1)] - sorted[low]) * (place - low);
}

/** @param {Float64Array} values */
const median = (values) => quantile(values.slice().sort(), 0.5);

/**
 * Whether a photo looks as if taken through a microscope (`fieldmark.identification.microscopy`).
 * @param {Picture} picture
 */
export function isMicroscopic(picture) {
  const { side, near, background, brightness, contrast, color, allOne } = MICROSCOPY;
  const data = resized(picture, [side, side], { filter: BOX }).data;
  const number = side * side;
  const channels = [0, 1, 2].map((channel) => Float64Array.from({ length: number }, (_, at) => data[3 * at + channel]));
  const ground = channels.map(median);
  const light = Float64Array.from({ length: number }, (_, at) => 0.299 * data[3 * at] + 0.587 * data[3 * at + 1] + 0.114 * data[3 * at + 2]);
  const tints = channels.map((channel) => channel.map((value, at) => value - light[at]));
  const usual = tints.map(median);
  let close = 0, apart = 0;
  for (let at = 0; at < number; at++) {
    if (channels.reduce((sum, channel, which) => sum + Math.abs(channel[at] - ground[which]), 0) < near) close++;
    apart += tints.reduce((sum, tint, which) => sum + Math.abs(tint[at] - usual[which]), 0);
  }
  const sorted = light.slice().sort();
  const even = quantile(sorted, 0.98) - quantile(sorted, 0.02) <= contrast && apart / number <= color;
  return close / number >= background && median(light) >= brightness && even && !isPlain(picture, allOne);
}
