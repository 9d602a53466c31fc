// Pages: what a program is for decides what they show.

function element(parent, tag, properties = {}) {
  return parent.appendChild(Object.assign(document.createElement(tag), properties));
}

/** The program of this folder as a page, or a sentence on why there is none. */
export async function showPage(body, folder = "./") {
  const title = element(body, "h1"), status = element(body, "p", { textContent: "Loading" });
  const report = (work) => work.catch((error) => { status.textContent = error.message; });
  const progress = (part) => { status.textContent = `Loading: ${Math.round(100 * part)} %`; };
  await report((async () => {
    const { name, page } = await (await fetched(folder + "program.json")).json();
    title.textContent = document.title = name;
    const [kind, show] = pages[page?.kind ?? "graph"];
    const loaded = await kind.load(folder, { progress });
    status.textContent = "";
    show(loaded, body, report);
  })());
}

/** A graph: what it takes and gives. */
function showGraph(program, body) {
  const text = (size) => typeof size === "number" ? size
    : size.map(([coefficient, ...symbols]) => [coefficient, ...symbols.map((s) => program.symbols[s].name)].join(" * ")).join(" + ");
  const lines = (word, all) => all.map(({ name, dtype, shape }) => `${word} ${name}: ${dtype}[${shape.map(text).join(", ")}]`);
  const inputs = program.inputs.filter(({ kind }) => kind === "input");
  element(body, "pre", { textContent: [...lines("input", inputs), ...lines("output", program.outputs)].join("\n") });
}

/** Sentences, one a line, and how alike they are. */
function showSentences(encoder, body, report) {
  const text = element(body, "textarea", { rows: 8, value: "A cat sits on the mat.\nThe kitten is on the rug.\nStock prices fell today." });
  const button = element(body, "button", { textContent: "Compare" }), table = element(body, "table");
  button.onclick = () => report((async () => {
    const vectors = await encoder.embed(text.value.split("\n").filter((line) => line.trim()));
    table.replaceChildren();
    for (const a of vectors) {
      const row = element(table, "tr");
      for (const b of vectors) element(row, "td", { textContent: a.reduce((sum, x, i) => sum + x * b[i], 0).toFixed(3) });
    }
  })());
}

/** A text that goes on, or that is answered below. */
function showText(model, body, report) {
  const answers = model instanceof AnsweringModel, word = answers ? "Answer" : "Continue";
  const text = element(body, "textarea", { rows: 12, value: answers ? "translate English to German: That is good." : "Once upon a time" });
  const button = element(body, "button", { textContent: word });
  const result = answers ? element(body, "textarea", { rows: 12, readOnly: true }) : text;
  let runs = false;
  button.onclick = () => {
    if (runs) { runs = false; return; }
    runs = true, button.textContent = "Stop";
    const done = () => { runs = false, button.textContent = word; };
    report(model.generate(text.value, { tokens: 256, onText: (all) => { result.value = all; return runs; } }).finally(done));
  };
}

const pages = {
  graph: [Program, showGraph], sentences: [SentenceEncoder, showSentences], text: [LanguageModel, showText], answers: [AnsweringModel, showText],
};
