import js from "@eslint/js";

const browser = ["self", "navigator", "document", "window", "location", "caches", "fetch", "indexedDB", "URL", "Blob", "File",
  "Response", "Request", "Headers", "Worker", "OffscreenCanvas", "createImageBitmap", "TextEncoder", "console", "crypto",
  "performance", "setTimeout", "crossOriginIsolated", "HTMLElement", "HTMLInputElement", "HTMLCanvasElement", "ImageData",
  "confirm", "Option"];

export default [
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2023, sourceType: "module", globals: Object.fromEntries(browser.map((name) => [name, "readonly"])) },
    rules: { eqeqeq: "error", "prefer-const": "error", "no-var": "error", curly: ["error", "multi-line"] },
  },
  { files: ["sw.js"], languageOptions: { sourceType: "script" } },
];
