// The page's side of a worker.

/** Bytes of memory from which a trap counts as lack of memory: the engine stops at 1 GiB, and a table that doubles fails from half of it on. */
const NEARLY_FULL = 512 << 20;

/** Why a request has no answer. */
export class Failure extends Error {
  constructor(message, { cancelled = false } = {}) {
    super(message);
    this.cancelled = cancelled;
  }
}

/** A worker with the compiled module. After a cancelled request or a failure, the next request starts a new one. */
export class Engine {
  #module;
  #address;
  #worker;
  #own = false; // whether the worker has loaded a policy
  #pending;

  constructor(module, address) {
    this.#module = module;
    this.#address = address;
    this.#start();
  }

  /** Whether a request is in work. */
  get busy() {
    return this.#pending !== undefined;
  }

  /** The answer to a request; one in work is cancelled. */
  request(message, progress = () => {}) {
    this.cancel();
    const own = message.javascript !== undefined;
    if (this.#own && !own) this.#end(); // A policy may change what it finds in its worker.
    if (!this.#worker) this.#start();
    this.#own = own;
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject, progress };
      this.#worker.postMessage(message);
    });
  }

  /** Ends the request in work, if there is one; its promise is rejected. */
  cancel() {
    if (this.busy) this.#fail(new Failure("cancelled", { cancelled: true }));
  }

  #start() {
    const worker = new Worker(this.#address);
    this.#worker = worker;
    // A message of a worker that has been replaced may still be on its way.
    worker.onmessage = ({ data }) => worker === this.#worker && this.#receive(data);
    worker.onerror = (event) => worker === this.#worker && this.#fail(new Failure(event.message || "the engine did not start"));
    worker.postMessage({ module: this.#module });
  }

  #end() {
    this.#worker?.terminate();
    this.#worker = undefined;
  }

  #receive({ answer, part, failure, trap, bytes }) {
    if (failure !== undefined) this.#fail(explain(failure, trap, bytes));
    else if (answer === undefined) this.#pending?.progress(part);
    else {
      const { resolve } = this.#pending;
      this.#pending = undefined;
      resolve(answer);
    }
  }

  #fail(failure) {
    this.#end();
    const pending = this.#pending;
    this.#pending = undefined;
    pending?.reject(failure);
  }
}

function explain(message, trap, bytes) {
  if (!trap) return new Failure(message);
  return bytes >= NEARLY_FULL
    ? new Failure(
        "The run needs more memory than a page has (1 GB). Shorten `stop`, use fewer flows or points, or run it with the command.",
      )
    : new Failure(`The engine stopped (${message}) and was restarted. This is a bug: please report the scenario, with what \`apportion run\` says about it.`);
}
