// The reader's drop policy: JavaScript that defines `admit`, evaluated in the worker alone.

const NAMES = { accept: 0, drop: 1, mark: 2 };

/**
 * The import `env.admit` of the engine, from the text of a policy.
 *
 * The text defines `function admit({ now, flow, size, packets, bytes })`, which returns "accept", "drop" or "mark".
 * The text is loaded as a script by its own address, since the page forbids `eval`.
 */
export function policy(text) {
  const address = URL.createObjectURL(new Blob([`self.admit = undefined;\n${text}\n;self.admit ??= admit;`]));
  try {
    importScripts(address);
  } finally {
    URL.revokeObjectURL(address);
  }
  const { admit } = self;
  if (typeof admit !== "function") throw new Error("the policy must define a function `admit`");
  return (now, flow, size, packets, bytes) => {
    const verdict = admit({ now: now / 1e9, flow, size, packets, bytes });
    if (!(verdict in NAMES)) throw new Error(`\`admit\` returned ${JSON.stringify(verdict)}; return "accept", "drop" or "mark"`);
    return NAMES[verdict];
  };
}
