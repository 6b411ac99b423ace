// The reader's buffer policy: JavaScript that defines `admit`, evaluated in the worker alone.

/** Most characters of an error that are shown. */
const MOST_TEXT = 2000;
const VERDICTS = { accept: 0, drop: 1, mark: 2 };

/** The policy that the page begins with. */
export const EXAMPLE = `// Decides about each packet that arrives, for links with the discipline "own".
//
// now: seconds; flow: its number; size: bytes; packets, bytes: backlog;
// random: from 0 to 1; rate: of the link, bit/s; state: an object for each link.
// Returns "accept", "drop" or "mark".

function admit({ flow, packets, random, state }) {
  // What a flow sends beyond an equal part of the last 100 arrivals is dropped.
  state.last ??= [];
  state.last.push(flow);
  if (state.last.length > 100) state.last.shift();
  const flows = new Set(state.last).size;
  const own = state.last.filter((each) => each === flow).length;
  return packets > 20 && random > 100 / flows / own ? "drop" : "accept";
}
`;

/** What was thrown, which in a policy may be anything, even what has no text. */
export function explained(error) {
  try {
    return String(error?.message ?? error).slice(0, MOST_TEXT);
  } catch {
    return "The policy threw a value that has no text.";
  }
}

/**
 * Imports `policy` and `admit` of the engine, from the text of a policy.
 *
 * The text is loaded as a script by its own address, since the page forbids `eval`.
 */
export function load(text) {
  const links = [];
  let decide;
  const define = () => {
    // In a function, so that the worker can load another text with the same names.
    const script = `self.policy = (() => {\n${text}\n;return admit;\n})();`;
    const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    try {
      importScripts(address);
    } catch (error) {
      throw new Error(`The policy is not right: ${explained(error)}`);
    } finally {
      URL.revokeObjectURL(address);
    }
    return self.policy;
  };
  return {
    policy(rate) {
      decide ??= define();
      links.push({ rate, state: {} });
      return links.length - 1;
    },
    admit(number, now, flow, size, packets, bytes, random) {
      const { rate, state } = links[number];
      const verdict = decide({ now: now / 1e9, flow, size, packets, bytes, random, rate, state });
      if (!Object.hasOwn(VERDICTS, verdict)) {
        throw new Error(`\`admit\` returned ${JSON.stringify(verdict)}; return "accept", "drop" or "mark".`);
      }
      return VERDICTS[verdict];
    },
  };
}
