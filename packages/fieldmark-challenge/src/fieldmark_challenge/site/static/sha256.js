// SHA-256 (FIPS 180-4) of data that comes in pieces. The browser's own takes a whole file at once, and only over TLS.
const primes = [];
for (let number = 2; primes.length < 64; number += 1) {
  if (primes.every((prime) => number % prime)) primes.push(number);
}
// The first 32 bits after the point.
const fraction = (value) => Math.floor((value - Math.floor(value)) * 2 ** 32) | 0;
const ROUNDS = Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime)));
const START = Int32Array.from(primes.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));
const BLOCK = 64;

export class Sha256 {
  #state = START.slice();
  #words = new Int32Array(BLOCK);
  #rest = new Uint8Array(BLOCK);
  #held = 0;
  #bytes = 0;

  update(buffer) {
    let piece = new Uint8Array(buffer);
    this.#bytes += piece.length;
    if (this.#held) {
      const taken = piece.subarray(0, BLOCK - this.#held);
      this.#rest.set(taken, this.#held);
      this.#held += taken.length;
      piece = piece.subarray(taken.length);
      if (this.#held < BLOCK) return this;
      this.#mix(this.#rest);
    }
    const whole = piece.length - (piece.length % BLOCK);
    this.#mix(piece.subarray(0, whole));
    this.#rest.set(piece.subarray(whole));
    this.#held = piece.length - whole;
    return this;
  }

  hex() {
    const bytes = this.#bytes;
    const end = new Uint8Array(this.#held < BLOCK - 8 ? BLOCK : 2 * BLOCK);
    end.set(this.#rest.subarray(0, this.#held));
    end[this.#held] = 0x80;
    const view = new DataView(end.buffer);
    view.setUint32(end.length - 8, Math.floor(bytes / 2 ** 29));
    view.setUint32(end.length - 4, (bytes * 8) % 2 ** 32);
    this.#mix(end);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #mix(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const [w, state] = [this.#words, this.#state];
    for (let at = 0; at < bytes.length; at += BLOCK) {
      for (let i = 0; i < 16; i += 1) w[i] = view.getInt32(at + 4 * i);
      for (let i = 16; i < 64; i += 1) {
        const [x, y] = [w[i - 15], w[i - 2]];
        const low = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
        const high = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
        w[i] = (w[i - 16] + low + w[i - 7] + high) | 0;
      }
      let [a, b, c, d, e, f, g, h] = state;
      for (let i = 0; i < 64; i += 1) {
        const turned = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
        const first = (h + turned + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i]) | 0;
        const other = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
        const second = (other + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        h = g; g = f; f = e; e = (d + first) | 0; d = c; c = b; b = a; a = (first + second) | 0;
      }
      state[0] += a; state[1] += b; state[2] += c; state[3] += d;
      state[4] += e; state[5] += f; state[6] += g; state[7] += h;
    }
  }
}
