/**
 * Resizing as Pillow does it, pixel by pixel: rows and columns are weighted by integers of 22 bits and rounded in between
 * (`fieldmark.features.resampling`).
 */

/** @typedef {{width: number, height: number, data: Uint8Array|Uint8ClampedArray}} Picture Three bytes a pixel. */
/** @typedef {{left: number, top: number, width: number, height: number}} Part */
/** @typedef {{first: Int32Array, most: number, weights: Int32Array}} Taps */
/** @typedef {{support: number, at: (x: number) => number}} Filter */

const BITS = 22;
const HALF = 1 << (BITS - 1);
/** From twice this ratio of sizes on, blocks of pixels are averaged first. */
const REDUCING_GAP = 2;

/** @type {Filter} */
export const CUBIC = {
  support: 2,
  at(x) {
    const far = Math.abs(x);
    if (far < 1) return (1.5 * far - 2.5) * far * far + 1;
    return far < 2 ? (((far - 5) * far + 8) * far - 4) * -0.5 : 0;
  },
};
/** @type {Filter} */
export const BOX = { support: 0.5, at: (x) => (x > -0.5 && x <= 0.5 ? 1 : 0) };

/**
 * What each new line is made of: old ones in a row, each with its weight.
 * @param {number} length How many old lines there are.
 * @param {number} covered How many of them, with fractions, become the new ones.
 * @param {number} resized How many new ones.
 * @param {number} start The first new one that is wanted.
 * @param {number} number How many are wanted.
 * @param {Filter} filter
 * @returns {Taps}
 */
export function taps(length, covered, resized, start, number, filter) {
  const scale = covered / resized;
  const wide = Math.max(scale, 1);
  const reach = filter.support * wide;
  const most = Math.ceil(reach) * 2 + 1;
  const first = new Int32Array(number);
  const weights = new Int32Array(number * most);
  for (let line = 0; line < number; line++) {
    const center = (start + line + 0.5) * scale;
    const low = Math.max(Math.trunc(center - reach + 0.5), 0);
    const high = Math.min(Math.trunc(center + reach + 0.5), length);
    const own = new Float64Array(high - low);
    let total = 0;
    for (let place = low; place < high; place++) {
      own[place - low] = filter.at((place - center + 0.5) / wide);
      total += own[place - low];
    }
    first[line] = low;
    for (let tap = 0; tap < own.length; tap++) {
      const share = total === 0 ? own[tap] : own[tap] / total;
      weights[line * most + tap] = Math.trunc(share * (1 << BITS) + (share < 0 ? -0.5 : 0.5));
    }
  }
  return { first, most, weights };
}

/** @param {number} sum */
const clipped = (sum) => (sum < 0 ? 0 : sum > 255 ? 255 : sum);

/**
 * New columns out of old ones.
 * @param {Picture} picture
 * @param {Taps} by
 * @param {number} width
 * @returns {Picture}
 */
function across(picture, by, width) {
  const { data, height, width: old } = picture;
  const made = new Uint8Array(width * height * 3);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const low = by.first[column];
      const high = Math.min(by.most, old - low);
      let red = HALF, green = HALF, blue = HALF;
      for (let tap = 0, at = (row * old + low) * 3; tap < high; tap++, at += 3) {
        const weight = by.weights[column * by.most + tap];
        red += weight * data[at];
        green += weight * data[at + 1];
        blue += weight * data[at + 2];
      }
      const to = (row * width + column) * 3;
      made[to] = clipped(red >> BITS);
      made[to + 1] = clipped(green >> BITS);
      made[to + 2] = clipped(blue >> BITS);
    }
  }
  return { width, height, data: made };
}

/**
 * New rows out of old ones.
 * @param {Picture} picture
 * @param {Taps} by
 * @param {number} height
 * @returns {Picture}
 */
function down(picture, by, height) {
  const { data, width, height: old } = picture;
  const line = width * 3;
  const made = new Uint8Array(line * height);
  const sums = new Int32Array(line);
  for (let row = 0; row < height; row++) {
    sums.fill(HALF);
    const low = by.first[row];
    const high = Math.min(by.most, old - low);
    for (let tap = 0; tap < high; tap++) {
      const weight = by.weights[row * by.most + tap];
      if (weight === 0) continue;
      const from = (low + tap) * line;
      for (let place = 0; place < line; place++) sums[place] += weight * data[from + place];
    }
    for (let place = 0; place < line; place++) made[row * line + place] = clipped(sums[place] >> BITS);
  }
  return { width, height, data: made };
}

/**
 * Blocks of pixels as their mean, the last ones in a row or column smaller (`Image.reduce`).
 * @param {Picture} picture
 * @param {number} wide
 * @param {number} high
 * @returns {Picture}
 */
export function reduced(picture, wide, high) {
  const width = Math.ceil(picture.width / wide);
  const height = Math.ceil(picture.height / high);
  const made = new Uint8Array(width * height * 3);
  for (let row = 0; row < height; row++) {
    const bottom = Math.min((row + 1) * high, picture.height);
    for (let column = 0; column < width; column++) {
      const right = Math.min((column + 1) * wide, picture.width);
      const number = (bottom - row * high) * (right - column * wide);
      const factor = Math.floor(2 ** 24 / number);
      let red = number >> 1, green = red, blue = red;
      for (let y = row * high; y < bottom; y++) {
        for (let at = (y * picture.width + column * wide) * 3, end = (y * picture.width + right) * 3; at < end; at += 3) {
          red += picture.data[at];
          green += picture.data[at + 1];
          blue += picture.data[at + 2];
        }
      }
      const to = (row * width + column) * 3;
      made[to] = Math.floor((red * factor) / 2 ** 24);
      made[to + 1] = Math.floor((green * factor) / 2 ** 24);
      made[to + 2] = Math.floor((blue * factor) / 2 ** 24);
    }
  }
  return { width, height, data: made };
}

/**
 * Whether a photo is made narrower before it is made lower; which it is depends on the Pillow that the model was fitted with.
 * @param {string} rule
 * @param {number} width
 * @param {number} height
 * @param {[number, number]} size
 */
function narrowerFirst(rule, width, height, size) {
  return rule === "always" || height <= size[1] || height - size[1] <= 2 * (width - size[0]);
}

/**
 * A part of a picture that was resized to some width and height.
 * @param {Picture} picture
 * @param {[number, number]} size
 * @param {{part?: Part, filter?: Filter, order?: string, gap?: boolean}} how
 * @returns {Picture}
 */
export function resized(picture, size, { part, filter = CUBIC, order = "fewer rows later", gap = false } = {}) {
  const wanted = part ?? { left: 0, top: 0, width: size[0], height: size[1] };
  let covered = [picture.width, picture.height];
  let source = picture;
  if (gap) {
    const wide = Math.trunc(picture.width / size[0] / REDUCING_GAP) || 1;
    const high = Math.trunc(picture.height / size[1] / REDUCING_GAP) || 1;
    if (wide > 1 || high > 1) {
      source = reduced(picture, wide, high);
      covered = [picture.width / wide, picture.height / high];
    }
  }
  const columns = taps(source.width, covered[0], size[0], wanted.left, wanted.width, filter);
  const rows = taps(source.height, covered[1], size[1], wanted.top, wanted.height, filter);
  if (narrowerFirst(order, source.width, source.height, size)) return down(across(source, columns, wanted.width), rows, wanted.height);
  return across(down(source, rows, wanted.height), columns, wanted.width);
}
