// Checks and runs of the scenario as it changes. What is seen is up to the callbacks.
import { MOST_BYTES } from "./fragment.js";
import { learn, seconds } from "./speed.js";
import { size } from "./text.js";

/** A run that would take longer asks first, seconds. */
const LONG = 20;
/** A run that takes no longer than this ends before the next begins, so that a slider in motion shows results. */
const SHORT = 1;
/** Pause after a change before the scenario is checked, and the longest wait while changes go on, milliseconds. */
const PAUSE = 120;
const LONGEST_PAUSE = 250;
/** Most memory that a run may need by its estimate, bytes. */
const MOST_MEMORY = 900e6;

/**
 * The scenario's way from text to result.
 *
 * `view` has `text()`, `seeds()`, `javascript()` (the policy, if the scenario uses it) and `doubt()` (why it must not run unasked,
 * until `agreed()`). The session calls its `invalid(problems)`, `checked(answer, text)`, `ask(question, go)`, `running()`, `progress(part)`,
 * `result(result, about)`, `failed(message)` and `cancelled()`.
 */
export class Session {
  #checker;
  #runner;
  #view;
  #timer;
  #since;
  #checked;
  #waiting = false;
  #runs = 0;
  #expected = 0;
  #agreed;

  constructor(checker, runner, view) {
    this.#checker = checker;
    this.#runner = runner;
    this.#view = view;
  }

  /** Checks and runs after a pause. */
  changed() {
    clearTimeout(this.#timer);
    this.#since ??= performance.now();
    const left = LONGEST_PAUSE - (performance.now() - this.#since);
    this.#timer = setTimeout(() => this.update(), Math.max(0, Math.min(PAUSE, left)));
  }

  /** Checks the scenario and, if it is right, runs it. */
  async update() {
    clearTimeout(this.#timer);
    this.#since = undefined;
    const text = this.#view.text();
    if (size(text) > MOST_BYTES) {
      this.#stop(`The scenario is longer than ${MOST_BYTES / 1000} kB, the most that this page runs. Run it with the command.`);
      return;
    }
    let answer;
    try {
      answer = await this.#checker.request({ op: "check", text });
    } catch (failure) {
      if (!failure.cancelled) this.#stop(failure.message);
      return;
    }
    if (this.#view.text() !== text) return; // The next check is under way.
    if (!answer.ok) {
      this.#stop(...answer.problems);
      return;
    }
    this.#checked = { ...answer, text };
    this.#view.checked(answer, text);
    if (this.#view.text() === text) await this.#run();
  }

  cancel() {
    this.#waiting = false;
    this.#runner.cancel();
  }

  /** Cancels, and what follows is said in place of it. */
  #drop() {
    this.#runs += 1;
    this.cancel();
  }

  #stop(...problems) {
    this.#checked = undefined;
    this.#drop();
    this.#view.invalid(problems.map((each) => (typeof each === "string" ? { message: each } : each)));
  }

  #ask(question, agree) {
    this.#drop();
    this.#view.ask(question, () => {
      agree();
      this.#run();
    });
  }

  async #run() {
    const { text, hops, bytes } = this.#checked;
    const seeds = this.#view.seeds();
    const estimate = seconds(hops * seeds);
    if (bytes > MOST_MEMORY) {
      const need = `The run needs about ${Math.ceil(bytes / 1e6)} MB of memory, and a page has 1 GB.`;
      this.#stop(`${need} Shorten \`stop\`, use fewer flows or points, or run it with the command.`);
      return;
    }
    const doubt = this.#view.doubt();
    if (doubt) {
      this.#ask(doubt, () => this.#view.agreed());
      return;
    }
    const wish = `${seeds} ${this.#view.javascript() ?? ""} ${text}`;
    if (estimate > LONG && this.#agreed !== wish) {
      this.#ask(long(estimate, hops * seeds), () => (this.#agreed = wish));
      return;
    }
    if (this.#runner.busy && this.#expected <= SHORT) {
      this.#waiting = true;
      return;
    }
    this.#expected = this.#view.javascript() === undefined ? estimate : Infinity; // A policy may loop for ever.
    await this.#work(text, seeds, hops * seeds);
    if (this.#waiting && this.#checked) {
      this.#waiting = false;
      await this.#run();
    }
  }

  async #work(text, seeds, hops) {
    const began = performance.now();
    const run = ++this.#runs;
    const javascript = this.#view.javascript();
    this.#view.running();
    try {
      const result = await this.#runner.request({ op: "run", text, seeds, phase_check: false, tables: true, javascript }, (part) =>
        this.#view.progress(part),
      );
      const took = (performance.now() - began) / 1000;
      if (!result.ok) return this.#view.invalid(result.problems);
      learn(hops, took);
      this.#view.result(result, { text, took, own: javascript !== undefined, last: !this.#waiting });
    } catch (failure) {
      if (!failure.cancelled) this.#view.failed(failure.message);
      else if (run === this.#runs) this.#view.cancelled();
    }
  }
}

/** The question before a long run. */
function long(estimate, hops) {
  const time = estimate < 90 ? `${Math.round(estimate)} s` : `${Math.round(estimate / 60)} min`;
  return `This run takes about ${time} (${Math.round(hops / 1e6)} million packet-hops).`;
}
