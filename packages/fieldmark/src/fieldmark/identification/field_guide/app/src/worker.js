/** Answers questions about photos, beside the page: what it computes never holds the page up. */

import * as ort from "../runtime/ort.wasm.min.mjs";
import { KeptPhotos, Specimen } from "./answers.js";
import { GuideError, bytesOf, openBook } from "./book.js";
import { PhotoError, decoded, isMicroscopic, isPlain, squaresOf } from "./photos.js";

/** @typedef {import("./contexts.js").Known} Known */
/** @typedef {import("./answers.js").LookedAt} LookedAt */

const MOST_THREADS = 4;
// Modules are loaded from `src/`, all other files from the folder above.
const asked = new URL(self.location.href).searchParams.get("threads");

/** @type {Promise<{book: any, kept: KeptPhotos|null, session: any}>|null} */
let opened = null;
/** Milliseconds that the network took for the question at hand. */
let spent = 0;

async function open() {
  const book = await openBook();
  ort.env.wasm.wasmPaths = new URL("../runtime/", import.meta.url).href;
  const cores = asked ? Number(asked) : Math.min(navigator.hardwareConcurrency || 1, MOST_THREADS);
  ort.env.wasm.numThreads = self.crossOriginIsolated ? cores : 1;
  const network = await bytesOf("../network.onnx");
  let session;
  try {
    session = await ort.InferenceSession.create(new Uint8Array(network), { executionProviders: ["wasm"] });
  } catch (error) {
    throw new GuideError(`The network could not be started (${error instanceof Error ? error.message : error}): export the guide again.`);
  }
  const rows = book.guide?.kept.rows ?? 0;
  const kept = rows ? new KeptPhotos(new Int8Array(await bytesOf("../kept.bin")), rows) : null;
  return { book, kept, session };
}

/**
 * @param {ArrayBuffer} buffer
 * @param {any} book
 * @param {any} session
 * @returns {Promise<LookedAt>}
 */
async function lookAt(buffer, book, session) {
  const { squares, looked } = squaresOf(await decoded(buffer), book.reading);
  /** @type {Record<string, any>} */
  const feeds = { squares: new ort.Tensor("uint8", squares.data, squares.dims) };
  if (squares.boxes) feeds.boxes = new ort.Tensor("float32", squares.boxes, [1, 4]);
  const began = performance.now();
  const said = await session.run(feeds);
  spent += performance.now() - began;
  const columns = Float64Array.from(said.scores.data);
  const unknown = said.unknown ? Number(said.unknown.data[0]) : null;
  return {
    said: { columns, labels: columns.length, scale: book.scale, unknown, decision: null },
    embedding: said.embedding ? said.embedding.data : null,
    plain: isPlain(looked),
    microscopic: isMicroscopic(looked),
  };
}

/** @param {{photos: ArrayBuffer[], known: Known}} question */
async function answer({ photos, known }) {
  opened ??= open();
  const { book, kept, session } = await opened;
  const began = performance.now();
  spent = 0;
  const seen = [];
  for (const [number, photo] of photos.entries()) {
    try {
      seen.push(await lookAt(photo, book, session));
    } catch (error) {
      if (error instanceof PhotoError && photos.length > 1) throw new PhotoError(`Photo ${number + 1}: ${error.message}`);
      throw error;
    }
  }
  return { answer: new Specimen(book, kept, seen, known).answer(), milliseconds: performance.now() - began, network_milliseconds: spent };
}

self.onmessage = async (event) => {
  const { id, question } = event.data;
  try {
    self.postMessage({ id, ...(question ? await answer(question) : { ready: Boolean(await (opened ??= open())) }) });
  } catch (error) {
    const own = error instanceof PhotoError || error instanceof GuideError;
    const sentence = own ? error.message : `This could not be answered (${error instanceof Error ? error.message : error}). Try another photo.`;
    if (error instanceof GuideError) opened = null;
    self.postMessage({ id, error: sentence });
  }
};
