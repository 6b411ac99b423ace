// The editors: CodeMirror with what a scenario, or a policy, needs.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, isolateHistory } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { javascript } from "@codemirror/legacy-modes/mode/javascript";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, Transaction } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { completions, meaning } from "./complete.js";

const COLOURS = HighlightStyle.define([
  { tag: tags.comment, color: "var(--muted)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--string)" },
  { tag: [tags.number, tags.bool, tags.atom], color: "var(--number)" },
  { tag: [tags.propertyName, tags.keyword], color: "var(--key)" },
  { tag: [tags.bracket, tags.heading], color: "var(--key)", fontWeight: "600" },
]);

// Tab is left to the browser, so that the keyboard can leave the editor.
const COMMON = [
  lineNumbers(),
  history(),
  drawSelection(),
  EditorView.lineWrapping,
  bracketMatching(),
  closeBrackets(),
  highlightActiveLine(),
  highlightSelectionMatches(),
  search({ top: true }),
  syntaxHighlighting(COLOURS),
  keymap.of([...closeBracketsKeymap, ...completionKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
];

/** The scenario's editor in `parent`; `changed(changes)` is called after each change of its text. */
export class ScenarioEditor {
  #view;
  #help = new Compartment();

  constructor(parent, changed) {
    this.#view = new EditorView({
      parent,
      state: EditorState.create({
        extensions: [
          COMMON,
          StreamLanguage.define(toml),
          lintGutter(),
          this.#help.of([]),
          EditorView.contentAttributes.of({ "aria-label": "Scenario (TOML)" }),
          EditorView.updateListener.of((update) => update.docChanged && changed(update.changes)),
        ],
      }),
    });
  }

  /** Turns on completion and documentation. */
  explain(catalog) {
    const hover = hoverTooltip((view, position) => {
      const found = meaning(catalog, view.state.doc.toString(), position);
      if (!found) return null;
      const dom = document.createElement("div");
      dom.className = "doc";
      dom.textContent = found.text;
      return { pos: found.from, end: found.to, create: () => ({ dom }) };
    });
    const complete = autocompletion({ override: [completions(catalog)] });
    this.#view.dispatch({ effects: this.#help.reconfigure([complete, hover]) });
  }

  get text() {
    return this.#view.state.doc.toString();
  }

  /** Another scenario: a step of the history of its own, but for the first. */
  set text(text) {
    const { length } = this.#view.state.doc;
    this.#view.dispatch({
      changes: { from: 0, to: length, insert: text },
      selection: { anchor: 0 },
      scrollIntoView: true,
      annotations: [Transaction.addToHistory.of(length > 0), isolateHistory.of("full")],
    });
  }

  /** Replaces spans of the text, `[{ from, to, insert }]`. */
  replace(changes) {
    this.#view.dispatch({ changes, annotations: Transaction.userEvent.of("input.type.knob") });
  }

  /** Shows problems, `[{ message, line, path }]`, at their lines, from 1: at the key if it is there. */
  mark(problems) {
    const { doc } = this.#view.state;
    const diagnostics = problems
      .filter(({ line }) => line)
      .map(({ line, path, message }) => {
        const { from, to, text } = doc.line(Math.min(line, doc.lines));
        const key = path?.split(".").at(-1);
        const at = key ? text.indexOf(key) : -1;
        const start = at >= 0 ? at : text.length - text.trimStart().length;
        return { from: from + start, to: at >= 0 ? from + at + key.length : to, severity: "error", message };
      })
      .sort((one, other) => one.from - other.from);
    this.#view.dispatch(setDiagnostics(this.#view.state, diagnostics));
  }

  /** Moves the cursor to a line, from 1. */
  go(line) {
    const { doc } = this.#view.state;
    this.#view.dispatch({ selection: { anchor: doc.line(Math.min(line, doc.lines)).to }, scrollIntoView: true });
    this.#view.focus();
  }
}

/** The editor of the reader's policy in `parent`; `changed()` is called after each change of its text. */
export function policyEditor(parent, text, changed) {
  return new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        COMMON,
        StreamLanguage.define(javascript),
        EditorView.contentAttributes.of({ "aria-label": "Own policy (JavaScript)" }),
        EditorView.updateListener.of((update) => update.docChanged && changed()),
      ],
    }),
  });
}
