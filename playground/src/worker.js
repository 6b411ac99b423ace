// The worker: one request at a time. A trap ends it, since the engine's memory is then in an unknown state.
import { start } from "./engine.js";
import { policy } from "./policy.js";

let engine;
let admit;
let bytes = () => 0;

self.onmessage = async ({ data }) => {
  try {
    if (data.module) {
      engine = start(data.module, {
        progress: (done, total) => self.postMessage({ done, total }),
        admit: (...state) => admit(...state),
      });
      engine.catch(() => {}); // Its error is reported with the first request.
      return;
    }
    const request = await engine;
    bytes = request.bytes;
    if (data.javascript !== undefined) admit = policy(data.javascript);
    self.postMessage({ answer: request({ ...data, javascript: data.javascript !== undefined || undefined }) });
  } catch (error) {
    self.postMessage({ failure: String(error.message ?? error), trap: error instanceof WebAssembly.RuntimeError, bytes: bytes() });
  }
};
