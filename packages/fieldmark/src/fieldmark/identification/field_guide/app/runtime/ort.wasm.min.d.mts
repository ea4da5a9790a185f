// The types of the runtime, whose files stand here in a guide.
export * from "onnxruntime-web";
