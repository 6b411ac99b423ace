// Links to the playground: `#s=` and the scenario's text, deflated (raw) and in base64url, then optional parts.
// The parts are listed in the README.

/** Longest scenario that the playground opens, in bytes. */
export const MOST_BYTES = 200_000;
/** Optional parts, as written. */
export const PARTS = ["seeds", "a", "b", "predict", "answer"];

/** The fragment, with its `#`, of `{ text, javascript?, seeds?, a?, b?, predict?, answer? }`. */
export async function encode(state) {
  const parts = [`s=${await pack(state.text)}`];
  if (state.javascript) parts.push(`js=${await pack(state.javascript)}`);
  for (const name of PARTS) if (state[name]) parts.push(`${name}=${encodeURIComponent(state[name])}`);
  return `#${parts.join("&")}`;
}

/** What a fragment holds, each part a text; throws if it is damaged or too long. */
export async function decode(fragment) {
  const state = {};
  for (const part of fragment.replace(/^#/, "").split("&")) {
    const [name, value] = [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)];
    if (name === "s") state.text = await unpack(value);
    else if (name === "js") state.javascript = await unpack(value);
    else if (PARTS.includes(name)) state[name] = decodeURIComponent(value);
  }
  return state;
}

async function pack(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpack(value) {
  const bytes = Uint8Array.from(atob(value.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let length = 0;
  for (;;) {
    const { done, value: chunk } = await reader.read();
    if (done) return text + decoder.decode();
    length += chunk.length;
    if (length > MOST_BYTES) {
      await reader.cancel();
      throw new RangeError(`the text in the link is longer than ${MOST_BYTES / 1000} kB`);
    }
    text += decoder.decode(chunk, { stream: true });
  }
}
