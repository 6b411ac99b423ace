// The simulator as a function from a request to its answer, in a worker of the page and in Node.

const text = (memory, at, length) => new TextDecoder().decode(new Uint8Array(memory.buffer, at, length));

/**
 * Instantiates the module and returns `request(object) -> object`.
 *
 * `progress(part)` is called during a run. `policy(rate)` returns a number for a link whose discipline is the reader's
 * own, and `admit(number, now, flow, size, packets, bytes, random)` its verdict: 0 accept, 1 drop, 2 mark. Imports of a
 * dependency that no request reaches are stubs that throw. A request that panics throws; the command shows its message.
 */
export async function start(module, { progress = () => {}, policy = () => 0, admit = () => 0 } = {}) {
  const own = { progress, policy, admit };
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    imports[from] ??= {};
    imports[from][name] =
      (from === "env" && own[name]) ||
      (() => {
        throw new Error(`the engine called ${from}.${name}, which a page does not have`);
      });
  }
  const { exports } = await WebAssembly.instantiate(module, imports);
  const { memory, alloc, free, request } = exports;

  const ask = (object) => {
    const argument = new TextEncoder().encode(JSON.stringify(object));
    const at = alloc(argument.length);
    new Uint8Array(memory.buffer, at, argument.length).set(argument);
    const answer = request(at, argument.length) >>> 0; // It frees the argument.
    const length = new DataView(memory.buffer).getUint32(answer, true);
    const json = text(memory, answer + 4, length);
    free(answer, 4 + length);
    return JSON.parse(json);
  };
  ask.bytes = () => memory.buffer.byteLength;
  return ask;
}
