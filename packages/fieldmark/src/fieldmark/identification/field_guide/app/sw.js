/** Keeps every file of the guide on the device, so that it works without a network; nothing of another origin is asked for. */

const VERSION = "development";
const scope = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self));
const KEPT = `fieldmark-guide ${scope.registration.scope} ${VERSION}`;
const POLICY = [
  "default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
  "worker-src 'self'", "manifest-src 'self'", "base-uri 'none'", "form-action 'none'",
].join("; ");
/** Without these two a browser gives no threads. */
const HEADERS = {
  "content-security-policy": POLICY,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
};

async function keepAll() {
  const response = await fetch("files.json", { cache: "no-cache" });
  const { files } = await response.clone().json();
  const cache = await caches.open(KEPT);
  await cache.put("files.json", response);
  await cache.addAll(Object.keys(files).map((name) => new Request(name, { cache: "no-cache" })));
}

async function forgetOld() {
  const begin = `fieldmark-guide ${scope.registration.scope} `;
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith(begin) && name !== KEPT).map((name) => caches.delete(name)));
  await scope.clients.claim();
}

/** @param {Request} request */
async function answered(request) {
  const cache = await caches.open(KEPT);
  const url = new URL(request.url);
  const place = url.pathname.endsWith("/") ? new URL("index.html", url).href : url.href;
  const response = (await cache.match(place, { ignoreSearch: true })) ?? (await fetch(request));
  if (response.type === "opaqueredirect" || response.status === 0) return response;
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(HEADERS)) headers.set(name, value);
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

scope.addEventListener("install", (event) => event.waitUntil(keepAll().then(() => scope.skipWaiting())));
scope.addEventListener("activate", (event) => event.waitUntil(forgetOld()));
scope.addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && new URL(event.request.url).origin === scope.location.origin) event.respondWith(answered(event.request));
});
