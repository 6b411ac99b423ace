// The simulator as a function from a request to its answer, in a worker of the page and in Node.

/**
 * Instantiates the module and returns `request(object) -> object`.
 *
 * `progress(done, total)` is called during a run; `admit` is the drop policy of the reader, if there is one. Imports
 * of a dependency that no request reaches are stubs that throw.
 */
export async function start(module, { progress = () => {}, admit = () => 0 } = {}) {
  const own = { progress, admit, now: () => performance.now() };
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    imports[from] ??= {};
    imports[from][name] =
      (from === "env" && own[name]) ||
      (() => {
        throw new Error(`the engine called ${from}.${name}, which a page does not have`);
      });
  }
  const { memory, alloc, free, request } = (await WebAssembly.instantiate(module, imports)).exports;

  const ask = (object) => {
    const argument = new TextEncoder().encode(JSON.stringify(object));
    const at = alloc(argument.length);
    new Uint8Array(memory.buffer, at, argument.length).set(argument);
    const answer = request(at, argument.length);
    free(at, argument.length);
    const length = new DataView(memory.buffer).getUint32(answer, true);
    const text = new TextDecoder().decode(new Uint8Array(memory.buffer, answer + 4, length));
    free(answer, 4 + length);
    return JSON.parse(text);
  };
  ask.bytes = () => memory.buffer.byteLength;
  return ask;
}
