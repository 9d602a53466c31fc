"""Models and graphs from files, through Python."""
import asyncio
import json
import os
import pickle
import shutil
import threading

import numpy as np
import pytest

import rlx

FIXTURES = os.environ["RLX_FIXTURES"]


def folder_of_words(folder):
    """The Llama of the fixtures, whose weights mean nothing, with a tokenizer of 256 words, "w0" to "w255"."""
    for name in ("config.json", "model.safetensors"):
        shutil.copy(os.path.join(FIXTURES, "hf", "llama", name), folder)
    model = {"type": "WordPiece", "unk_token": "w0", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
             "vocab": {f"w{i}": i for i in range(256)}}  # fmt: skip
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "post_processor": None,
                 "pre_tokenizer": {"type": "Whitespace"}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False}, "model": model}  # fmt: skip
    with open(os.path.join(folder, "tokenizer.json"), "w") as file:
        json.dump(tokenizer, file)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return folder_of_words(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def model(folder):
    return rlx.Model.open(folder, threads=1)


def test_an_answer_comes_in_pieces(model):
    prompt = "w1 w2 w3"
    pieces = list(model.generate(prompt, max_tokens=8))
    assert pieces and all(pieces)
    again = model.generate(prompt, max_tokens=8)
    assert "".join(again) == "".join(pieces) and len(again.ids) == 8 and again.finish_reason == "max_tokens"
    sampled = ["".join(model.generate(prompt, max_tokens=8, temperature=1.5, seed=seed)) for seed in (1, 1, 2)]
    assert sampled[0] == sampled[1] != sampled[2]


def test_tokens_and_logits(model, folder):
    ids = model.tokenize("w1 w2 w3")
    assert ids == [1, 2, 3] and model.text_of(ids) == "w1 w2 w3" and model.vocab_size == 256
    model.rewind(0)
    logits = model.logits(ids)
    assert logits.shape == (1, model.vocab_size)
    best = int(logits.numpy().argmax())
    generation = model.generate("w1 w2 w3", max_tokens=1)
    list(generation)
    assert generation.ids[0] == best
    assert rlx.Tokenizer.open(folder).encode("w1 w2 w3") == ids


def test_prompts_may_be_tokens(model):
    expected = list(model.generate("w1 w2 w3", max_tokens=8))
    model.rewind(0)
    for ids in ([1, 2, 3], (1, 2, 3), range(1, 4), np.array([1, 2, 3]), np.array([1, 2, 3], np.uint8), rlx.asarray([1, 2, 3])):
        assert list(model.generate(ids, max_tokens=8)) == expected
    seen = model.logits(rlx.asarray([4]))
    model.rewind(len(model.ids) - 1)
    assert np.array_equal(model.logits([4]), seen)
    assert model.text_of(np.array([1, 2])) == "w1 w2"
    with pytest.raises(rlx.Error, match="token 300 is not in the vocabulary .allowed: 0..255"):
        model.generate([1, 300])
    for ids, seen in (([1, 2.5], "2.5 is no token"), ([[1, 2]], "is no token"), ([2**40], "1099511627776 is no token"), (["w1"], "'w1' is no token"),
                      (5, "a int"), (None, "a NoneType"), (np.int32(5), "a int32")):  # fmt: skip
        for call in (model.generate, model.logits, model.text_of):
            with pytest.raises(TypeError, match=f"ids: .*{seen} .allowed: a list or a flat array of integers"):
                call(ids)


def test_a_text_is_what_the_user_says(tmp_path):
    folder_of_words(tmp_path)
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}|{% endfor %}{{ 'with ' + tools[0].name if tools else '' }}"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    model = rlx.Model.open(tmp_path, threads=1)
    for text in ("w1 w2", "[1, 2] or {3}", '{"a": 1}', "", '"quoted"\n'):
        assert model.chat_prompt(text) == f"user: {text}|" == model.chat_prompt([{"role": "user", "content": text}])
    message = {"role": "user", "content": "w1"}
    for given in ([message], message, (message,), json.dumps([message], indent=1), {"messages": [message]}, json.dumps({"messages": [message]})):
        assert model.chat_prompt(given, tools=[{"name": "clock"}]) == "user: w1|with clock"
    assert "".join(model.chat("w1", max_tokens=4)) == "".join(model.chat([message], max_tokens=4))
    for given in (None, 3, b"w1"):
        with pytest.raises(TypeError, match="allowed: a str, or a list of dicts with role and content"):
            model.chat(given)
    with pytest.raises(rlx.Error, match="line 1"):
        model.chat('[{"role": ')


def test_answers_obey_a_grammar(model):
    answer = "".join(model.generate("w1", max_tokens=6, grammar='root ::= (" "? ("w7" | "w8"))+'))
    assert answer and set(answer.split()) <= {"w7", "w8"}


def test_recorded_tokens_come_out(model):
    recorded = rlx.load_safetensors(os.path.join(FIXTURES, "hf", "llama", "expected.safetensors"))
    prompt_ids = recorded["prompt_ids"].numpy().ravel()
    prompt = " ".join(f"w{i}" for i in prompt_ids)
    expected = recorded["greedy_ids"].numpy().ravel().tolist()[len(prompt_ids) :]
    generation = model.generate(prompt, max_tokens=len(expected))
    list(generation)
    assert generation.ids == expected


def test_wrong_files_and_options_are_errors(model, tmp_path):
    with pytest.raises(rlx.Error, match="nothing.gguf"):
        rlx.Model.open(tmp_path / "nothing.gguf")
    for ask in (lambda: model.generate("w1", temprature=1), lambda: model.answers(["w1"], temprature=1)):
        with pytest.raises(TypeError, match=r"there is no option 'temprature' of an answer \(allowed: max_tokens"):
            ask()
    with pytest.raises(rlx.Error, match="allowed: f32, bf16, f16, int8"):
        rlx.Session(precision="f8")


def test_other_threads_go_on_while_a_model_generates(model):
    count, done = [0], threading.Event()

    def counts():
        while not done.is_set():
            count[0] += 1

    thread = threading.Thread(target=counts)
    thread.start()
    list(model.generate("w1 w2 w3", max_tokens=30))
    done.set()
    thread.join()
    assert count[0] > 100


def test_sentences_become_vectors(tmp_path):
    for name in ("config.json", "model.safetensors"):
        shutil.copy(os.path.join(FIXTURES, "hf", "bert", name), tmp_path)
    for name in os.listdir(os.path.join(FIXTURES, "sentence_model")):
        source = os.path.join(FIXTURES, "sentence_model", name)
        (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, tmp_path / name)
    encoder = rlx.SentenceEncoder.open(tmp_path)
    vectors = encoder.embed(["a cat", "a dog", "a cat"]).numpy()
    assert vectors.shape == (3, encoder.width) and np.array_equal(vectors[0], vectors[2])
    assert np.allclose((vectors**2).sum(1), 1, rtol=1e-5)


def encoder_folder(folder):
    for name in ("config.json", "model.safetensors"):
        shutil.copy(os.path.join(FIXTURES, "hf", "bert", name), folder)
    for name in os.listdir(os.path.join(FIXTURES, "sentence_model")):
        source = os.path.join(FIXTURES, "sentence_model", name)
        (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, folder / name)
    return folder


def test_models_are_pickled_by_their_paths(folder, model, tmp_path):
    data = pickle.dumps(model)
    assert len(data) < 1000
    options = {"max_tokens": 6, "temperature": 0.8, "seed": 3}
    assert list(pickle.loads(data).generate("w1 w2", **options)) == list(model.generate("w1 w2", **options))
    encoder = rlx.SentenceEncoder.open(encoder_folder(tmp_path), threads=1)
    again = pickle.loads(pickle.dumps(encoder))
    assert np.array_equal(again.embed(["a cat"]), encoder.embed(["a cat"]))
    with pytest.raises(rlx.Error, match="allowed: threads, precision, device"):
        pickle.dumps(rlx.Model.open(folder, session=rlx.Session(threads=1)))


def test_a_model_of_an_encoder_embeds(tmp_path):
    model = rlx.Model.load(encoder_folder(tmp_path), threads=1)
    shown = []
    vectors = model.embed(["a cat", "a dog"], progress=lambda done, total: shown.append((done, total)))
    assert np.array_equal(vectors, rlx.SentenceEncoder.open(tmp_path, threads=1).embed(["a cat", "a dog"])) and shown[-1] == (2, 2)
    with pytest.raises(rlx.Error, match="no language model"):
        model.generate("a")


def test_pieces_come_while_others_work(model):
    turns = []

    async def answer():
        return [piece async for piece in model.generate("w1 w2 w3", max_tokens=8)]

    async def others():
        for i in range(3):
            turns.append(i)
            await asyncio.sleep(0)

    async def both():
        return (await asyncio.gather(answer(), others()))[0]

    assert asyncio.run(both()) == list(model.generate("w1 w2 w3", max_tokens=8)) and turns == [0, 1, 2]


def test_a_text_alone_is_no_list_of_letters(model, tmp_path):
    encoder = rlx.Model.load(encoder_folder(tmp_path), threads=1)
    for call in (encoder.embed, rlx.SentenceEncoder.open(tmp_path).embed, model.answers):
        with pytest.raises(TypeError, match="one str, 'a cat'"):
            call("a cat")


def test_many_prompts_are_answered_at_a_time(model):
    prompts = ["w1 w2", "w3", "w4 w5 w6"]
    answers = model.answers(prompts, sequences=2, max_tokens=5)
    assert [each.text for each in answers] == ["".join(model.generate(prompt, max_tokens=5)) for prompt in prompts]
    assert answers[0].finish_reason == "max_tokens" and len(answers[0].ids) == 5
    by_ids = model.answers([[1, 2], np.array([3]), rlx.asarray([4, 5, 6])], sequences=2, max_tokens=5)
    assert [each.text for each in by_ids] == [each.text for each in answers]
    with pytest.raises(TypeError, match="ids: a str .allowed: a list"):
        model.answers([[1], "w2"])


def test_threads_that_ask_one_model_for_answers_take_turns(model):
    prompts = ["w1 w2", "w3", "w4 w5 w6"]
    expected, found = [each.ids for each in model.answers(prompts, max_tokens=5)], []

    def ask():
        for _ in range(20):
            found.append([each.ids for each in model.answers(prompts, max_tokens=5)])

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [expected] * 60


def test_threads_that_use_one_model_in_every_way_take_turns(model):
    text, failures = " ".join(["w1"] * 200), []
    judged = model.perplexity(text, context=32)["nll"]

    def use():
        try:
            for _ in range(20):
                assert model.perplexity(text, context=32, progress=lambda done, total: None)["nll"] == judged
                list(model.generate("w1", max_tokens=20))
        except Exception as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=use) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures


def test_perplexity_says_how_well_a_text_is_predicted(model):
    judged = model.perplexity(" ".join(f"w{i}" for i in range(40)), context=8)
    assert judged["windows"] == 5 and judged["perplexity"] == pytest.approx(np.exp(judged["nll"])) and judged["tokens"] > 0


def test_files_are_converted_and_verified(tmp_path):
    source = os.path.join(FIXTURES, "hf", "llama")
    report = rlx.convert(source, tmp_path / "all.safetensors", dtype="bfloat16", progress=True)
    assert [os.path.basename(path) for path in report["files"]] == ["all.safetensors"]
    assert all(array.dtype == rlx.bfloat16 for array in rlx.load_safetensors(tmp_path / "all.safetensors").values())
    rows = rlx.verify(source)
    assert rows and all(row["passed"] for row in rows)
    with pytest.raises(rlx.Error, match="Q9"):
        rlx.quantize(source, tmp_path / "m.gguf", "Q9")


def test_an_exception_of_progress_ends_the_work(tmp_path):
    encoder = rlx.SentenceEncoder.open(encoder_folder(tmp_path), threads=1)

    def stop(done, total):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        encoder.embed(["a"] * 100, progress=stop)


def test_graphs_run_by_names(tmp_path):
    graph = rlx.parse_graph("graph g(B<=8) {\n%x: f32[B,2] = input {label=\"x\"}\n%w: f32[2] = input {label=\"w\", role=param}\n%y = mul(%x, %x)\n"
                            "%z = reduce(%y) {op=sum, axes=[1]}\noutput z = %z\n}", "text")  # fmt: skip
    executable = rlx.Session(threads=1).compile(graph)
    executable.set_param("w", np.ones(2, np.float32))
    assert executable.run({"x": np.float32([[1, 2], [3, 4]])})["z"].tolist() == [5, 25]
    assert graph.inputs[0][:2] == ("x", "input") and "output 'z'" in executable.dump("lir")
    rlx.save_graph(tmp_path / "g.safetensors", graph, {"w": np.float32([1, 2])})
    again, weights = rlx.load_graph(tmp_path / "g.safetensors")
    assert again == graph and weights["w"].tolist() == [1, 2]
    assert executable.profile({"x": np.zeros((1, 2), np.float32)}, 1)[0]["seconds"] > 0
    with pytest.raises(rlx.Error, match="'y'"):
        executable.run({"y": np.zeros(2, np.float32)})
    rlx.save_safetensors(tmp_path / "a.safetensors", {"a": np.arange(3)})
    assert rlx.load_safetensors(tmp_path / "a.safetensors")["a"].tolist() == [0, 1, 2]


def test_a_session_computes_on_the_device_that_it_is_given():
    graph = rlx.parse_graph("graph twice { %x: f32[3] = input {label=\"x\"} %y = add(%x, %x) output y = %y }", "here")
    assert "cpu" in rlx.devices()
    for name, description in rlx.devices().items():
        session = rlx.Session(device=name, cache_folder="")
        assert session.device == description
        assert list(session.compile(graph).run({"x": np.float32([1, 2, 3])})["y"]) == [2, 4, 6]
    with pytest.raises(rlx.Error, match="no device 'gpu'"):
        rlx.Session(device="gpu")


def test_answers_that_are_read_in_turn_are_those_read_alone(model):
    prompts = ["w1 w2 w3", "w9 w8 w7"]
    alone = ["".join(model.generate(prompt, max_tokens=8)) for prompt in prompts]
    both, pieces = [model.generate(prompt, max_tokens=8) for prompt in prompts], [[], []]
    for _ in range(8):
        for generation, its in zip(both, pieces):
            its.append(next(generation, ""))
    assert ["".join(its) for its in pieces] == alone
