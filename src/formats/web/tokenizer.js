// Tokenizers by tokenizer.json, but for what makes ids of words.

const refuse = (part, kind) => { throw new Error(`tokenizer.json: ${part} ${kind} is not supported in a page`); };
const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
/** Files mean Unicode's white space, which is not quite that of scripts; not all browsers know groups without case. */
const regex = (text) => new RegExp(text.replace(/\\s/g, "\\p{White_Space}").replace(/\\S/g, "\\P{White_Space}")
  .replace(/\(\?i:([^()]*)\)/g, (_, inner) => `(?:${inner.replace(/[a-z]/gi, (char) => `[${char.toLowerCase()}${char.toUpperCase()}]`)})`), "gu");
const pattern = ({ Regex, String: text }) => Regex !== undefined ? regex(Regex) : new RegExp(escaped(text), "gu");
const punctuation = /[!-/:-@[-`{-~]|\p{P}/u;
const utf8 = (text) => new TextEncoder().encode(text);
/** What stands for the bytes of a text that no other token has. */
const byteTokens = (text) => Array.from(utf8(text), (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
const textOf = (bytes, fatal = false) => new TextDecoder("utf-8", { fatal, ignoreBOM: true }).decode(new Uint8Array(bytes));

const lower = (text) => Array.from(text, (char) => char.toLowerCase()).join("");

const normalizers = {
  Lowercase: lower,
  NFC: (text) => text.normalize("NFC"), NFD: (text) => text.normalize("NFD"),
  NFKC: (text) => text.normalize("NFKC"), NFKD: (text) => text.normalize("NFKD"),
  StripAccents: (text) => text.replace(/\p{M}/gu, ""),
  Strip: (text, { strip_left, strip_right }) => {
    if (strip_left) text = text.replace(/^\p{White_Space}+/u, "");
    return strip_right ? text.replace(/\p{White_Space}+$/u, "") : text;
  },
  Replace: (text, step) => text.replace(pattern(step.pattern), () => step.content),
  Prepend: (text, { prepend }) => text && prepend + text,
  Sequence: (text, { normalizers: steps }) => steps.reduce(normalized, text),
};
const normalized = (text, step) => step ? (normalizers[step.type] ?? refuse("normalizer", step.type))(text, step) : text;

/** The parts of a text between the matches and, where they are wanted, the matches, each with whether it is one. */
function parts(text, of) {
  const all = [];
  let end = 0;
  for (const match of text.matchAll(of)) {
    if (match.index > end) all.push([text.slice(end, match.index), false]);
    if (match[0]) all.push([match[0], true]);
    end = match.index + match[0].length;
  }
  if (end < text.length) all.push([text.slice(end), false]);
  return all;
}

/** Joins parts where `behavior` says that a match stays with its neighbour. */
function split(text, of, behavior = "Isolated", invert = false) {
  const words = [];
  let before;
  for (const [part, matches] of parts(text, of)) {
    const delimiter = matches !== invert;
    const joins = { MergedWithPrevious: !before && delimiter, MergedWithNext: before && !delimiter, Contiguous: before === delimiter }[behavior];
    if (behavior === "Removed" && delimiter) continue;
    if (joins && words.length) words.push(words.pop() + part);
    else words.push(part);
    before = delimiter;
  }
  return words;
}

const cutters = {
  WhitespaceSplit: (word) => word.split(/\p{White_Space}+/u).filter(Boolean),
  Whitespace: (word) => word.match(/[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d\p{White_Space}]+/gu) ?? [],
  Punctuation: (word, { behavior }) => split(word, new RegExp(punctuation, "gu"), behavior),
  Digits: (word, { individual_digits }) => split(word, /\p{N}/gu, individual_digits ? "Isolated" : "Contiguous"),
  Split: (word, step) => split(word, pattern(step.pattern), step.behavior, step.invert),
  Metaspace: (word, { replacement, prepend_scheme = "always", split: cuts = true }, atStart) => {
    const wanted = prepend_scheme === "always" || (prepend_scheme === "first" && atStart);
    const marked = word.replaceAll(" ", replacement);
    const text = wanted && !marked.startsWith(replacement) ? replacement + marked : marked;
    return cuts ? split(text, new RegExp(escaped(replacement), "gu"), "MergedWithNext") : [text];
  },
};
function cut(words, step, atStart) {
  if (!step) return words;
  if (step.type === "Sequence") return step.pretokenizers.reduce((all, each) => cut(all, each, atStart), words);
  const cutter = cutters[step.type] ?? refuse("pre-tokenizer", step.type);
  return words.flatMap((word, i) => cutter(word, step, atStart && i === 0));
}

/** The ids before and after one text. */
function frame(step) {
  if (!step || step.type === "ByteLevel") return [[], []];
  if (step.type === "BertProcessing" || step.type === "RobertaProcessing") return [[step.cls[1]], [step.sep[1]]];
  if (step.type === "Sequence") return step.processors.map(frame).reduce((a, b) => [[...b[0], ...a[0]], [...a[1], ...b[1]]], [[], []]);
  if (step.type !== "TemplateProcessing") refuse("post-processor", step.type);
  const text = step.single.findIndex((piece) => piece.Sequence);
  const ids = (pieces) => pieces.flatMap(({ SpecialToken: { id } }) => step.special_tokens[id].ids);
  return [ids(step.single.slice(0, text)), ids(step.single.slice(text + 1))];
}

const decoders = {
  ByteFallback: (tokens) => {
    const all = [];
    for (let i = 0; i < tokens.length; ++i) {
      const bytes = [];
      for (let byte; (byte = /^<0x([0-9a-f]{2})>$/i.exec(tokens[i] ?? "")); ++i) bytes.push(parseInt(byte[1], 16));
      try {
        all.push(textOf(bytes, true));
      } catch {
        all.push(...bytes.map(() => "\ufffd"));
      }
      if (i < tokens.length) all.push(tokens[i]);
    }
    return all;
  },
  Fuse: (tokens) => [tokens.join("")],
  Replace: (tokens, step) => tokens.map((token) => token.replace(pattern(step.pattern), () => step.content)),
  Strip: (tokens, { content, start, stop }) => tokens.map((token) => {
    for (let i = 0; i < start && token.startsWith(content); ++i) token = token.slice(content.length);
    for (let i = 0; i < stop && token.endsWith(content); ++i) token = token.slice(0, -content.length);
    return token;
  }),
  Metaspace: (tokens, { replacement, prepend_scheme }) =>
    tokens.map((token, i) => token.replaceAll(replacement, i === 0 && prepend_scheme !== "never" ? "" : " ")),
  Sequence: (tokens, { decoders: steps }) => steps.reduce(decoded, tokens),
};
const decoded = (tokens, step) => (decoders[step.type] ?? refuse("decoder", step.type))(tokens, step);

const allSteps = { normalizers, cutters, decoders };
const tools = { refuse, regex, utf8, textOf, byteTokens, lower, split, punctuation };

export class Tokenizer {
  /** A folder has the script of its word model: what makes ids of a word, and steps of tokenizers with such models alone. */
  static async load(folder = "./") {
    const words = await import(new URL(folder + "words.js", location.href));
    return new Tokenizer(await (await fetched(folder + "tokenizer.json")).json(), words);
  }

  constructor(file, words) {
    this.file = file;
    const { vocab } = file.model;
    const ids = new Map(Array.isArray(vocab) ? vocab.map(([token], id) => [token, id]) : Object.entries(vocab));
    const steps = words.steps(tools);
    for (const kind in steps) Object.assign(allSteps[kind], steps[kind]);
    this.word = words.wordModel(file.model, ids, tools);
    this.tokens = new Map([...ids].map(([token, id]) => [id, token]));
    this.added = new Map();
    for (const token of file.added_tokens) this.added.set(token.content, token), this.tokens.set(token.id, token.content);
    this.special = new Set(file.added_tokens.filter(({ special }) => special).map(({ id }) => id));
    this.frame = frame(file.post_processor);
    const matcher = (normalized) => {
      const some = file.added_tokens.filter((token) => token.normalized === normalized).sort((a, b) => b.content.length - a.content.length);
      return some.length ? new RegExp(some.map(({ content, lstrip, rstrip, single_word }) =>
        (lstrip ? "\\p{White_Space}*" : "") + (single_word ? "(?<![\\p{L}\\p{N}_])" : "") + escaped(content) +
        (single_word ? "(?![\\p{L}\\p{N}_])" : "") + (rstrip ? "\\p{White_Space}*" : "")).join("|"), "gu") : /(?!)/gu;
    };
    this.raw = matcher(false), this.after = matcher(true);
  }

  addedId(text) { return (this.added.get(text) ?? this.added.get(text.trim())).id; }

  /** The ids of a text, at most so many, with the special tokens around it. */
  encode(text, most = Infinity) {
    let atStart = true;
    const words = (part) => {
      const found = cut([part], this.file.pre_tokenizer, atStart).flatMap(this.word);
      atStart = false;
      return found;
    };
    const ids = parts(text, this.raw).flatMap(([part, isAdded]) => {
      if (!isAdded) return parts(normalized(part, this.file.normalizer), this.after).flatMap(([inner, is]) => is ? (atStart = false, [this.addedId(inner)]) : words(inner));
      atStart = false;
      return [this.addedId(part)];
    });
    const [before, after] = this.frame;
    return [...before, ...ids.slice(0, Math.max(most - before.length - after.length, 0)), ...after];
  }

  /** The text of tokens, without special ones. */
  decode(ids) {
    const tokens = ids.filter((id) => !this.special.has(id) && this.tokens.has(id)).map((id) => this.tokens.get(id));
    return (this.file.decoder ? decoded(tokens, this.file.decoder) : tokens).join(this.file.decoder ? "" : " ");
  }
}
