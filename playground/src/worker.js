// The worker: one request at a time. After a failure the page replaces it, since the engine's memory may be torn.
import { start } from "./engine.js";
import { explained, load } from "./policy.js";

// A policy that is loaded later shall not answer for the engine.
const post = self.postMessage.bind(self);
for (let each = self; each; each = Object.getPrototypeOf(each)) Reflect.deleteProperty(each, "postMessage");

/** Whether the engine itself stopped. A value that a policy throws may refuse the question. */
function isTrap(error) {
  try {
    return error instanceof WebAssembly.RuntimeError;
  } catch {
    return false;
  }
}

let engine;
let own;
let bytes = () => 0;

self.onmessage = async ({ data: { module, javascript, ...message } }) => {
  try {
    if (module) {
      engine = start(module, {
        progress: (part) => post({ part }),
        policy: (rate) => own.policy(rate),
        admit: (...arrival) => own.admit(...arrival),
      });
      engine.catch(() => {}); // Its error is reported with the first request.
      return;
    }
    const request = await engine;
    bytes = request.bytes;
    own = load(javascript ?? "");
    post({ answer: request(message) });
  } catch (error) {
    post({ failure: explained(error), trap: isTrap(error), bytes: bytes() });
  }
};
