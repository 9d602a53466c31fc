"""Models from files: language models, encoders, rerankers, classifiers. They are pickled by their paths, and weights are mapped where they are opened."""
import functools
import json
import os
import re
import threading
import weakref

from . import _core, _progress
from ._core import Error


def _session(threads, precision, device):
    return _core.Session(threads=threads, precision=precision or "f32", device=device) if threads or precision or device else None


def _absolute(adapters):
    """Adapters as pairs of path and scale; a path alone counts as it is."""
    pairs = [(each, 1.0) if isinstance(each, (str, os.PathLike)) else each for each in adapters]
    return [(os.path.abspath(path), scale) for path, scale in pairs]


def _reopened(cls, path, options):
    return cls(path, **options)


class _Opened:
    """A model that was opened from `path` with `options`, by which it is pickled. Another process maps the same file."""

    def __init__(self, path, options, session):
        self.path, self._options = os.path.abspath(path), options
        self._given = session is not None

    @classmethod
    def open(cls, path, **options):
        """The model of a file or folder; the options are those of the class."""
        return cls(path, **options)

    load = open

    def __reduce__(self):
        if self._given:
            raise Error(f"{type(self).__name__} of {self.path}: it has a session of its own and cannot be pickled (allowed: threads, precision, device)")
        return _reopened, (type(self), self.path, self._options)

    def __repr__(self):
        return f"rlx.{type(self).__name__}({self.path!r})"


def _texts_of(texts):
    """A list of texts. One by itself is refused: as a list it would be its letters."""
    if isinstance(texts, str):
        raise TypeError(f"texts: one str, {texts[:20]!r} (allowed: a list of them)")
    return list(texts)


class SentenceEncoder(_Opened):
    """An encoder that embeds texts: a folder of Hugging Face or a GGUF file. Any number of threads may use it."""

    def __init__(self, path, session=None, batch_size=32, adapters=(), threads=0, precision=None, device=""):
        adapters = _absolute(adapters)
        super().__init__(path, dict(batch_size=batch_size, adapters=adapters, threads=threads, precision=precision, device=device), session)
        self._core = _core.SentenceEncoder._open(path, session or _session(threads, precision, device), batch_size, adapters)

    @property
    def width(self) -> int:
        """The size of an embedding."""
        return self._core.width

    def embed(self, texts, progress=False):
        """One row for each text, in order: f32 (texts, width). `progress`: True for a bar by tqdm, or a function of (done, total)."""
        with _progress.shown(progress, "embed") as report:
            return self._core.embed(_texts_of(texts), report)


class Reranker(_Opened):
    """A cross-encoder that says how well texts answer a query. Any number of threads may use it."""

    def __init__(self, path, session=None, adapters=(), threads=0, precision=None, device=""):
        adapters = _absolute(adapters)
        super().__init__(path, dict(adapters=adapters, threads=threads, precision=precision, device=device), session)
        self._core = _core.Reranker._open(path, session or _session(threads, precision, device), adapters)

    def score(self, query, texts, progress=False):
        """The score of each text, in order."""
        with _progress.shown(progress, "score") as report:
            return self._core.score(query, _texts_of(texts), report)

    def rank(self, query, texts, progress=False):
        """Pairs of place and score, the best first; equal ones in order."""
        scores = self.score(query, texts, progress)
        return sorted(enumerate(scores), key=lambda pair: -pair[1])


class Classifier(_Opened):
    """Labels texts, or names and places in them: a BERT for sequence or token classification, and others. Any number of threads may use it."""

    def __init__(self, path, session=None, batch_size=32, adapters=(), threads=0, precision=None, device=""):
        adapters = _absolute(adapters)
        super().__init__(path, dict(batch_size=batch_size, adapters=adapters, threads=threads, precision=precision, device=device), session)
        self._core = _core.Classifier._open(path, session or _session(threads, precision, device), batch_size, adapters)

    @property
    def labels(self):
        """The names of the labels."""
        return self._core.labels

    @property
    def labels_parts(self) -> bool:
        """Whether it labels parts of texts, and not whole ones."""
        return self._core.labels_parts

    def classify(self, texts, progress=False):
        """For each text, or pair of texts, pairs of label and score, 0..1, the likeliest first."""
        with _progress.shown(progress, "classify") as report:
            return self._core.classify(_texts_of(texts), report)

    def parts(self, texts, progress=False):
        """For each text its parts with a label, in order: dicts of label, score, begin, end (places in the str) and text."""
        texts = _texts_of(texts)
        with _progress.shown(progress, "classify") as report:
            found = self._core.parts(texts, report)
        return [_parts_of(text, parts) for text, parts in zip(texts, found)]


def _parts_of(text, parts):
    """Places in bytes become places in the text."""
    data = text.encode()
    place = {at: len(data[:at].decode(errors="ignore")) for part in parts for at in part[2:]}
    return [dict(label=label, score=score, begin=place[begin], end=place[end], text=text[place[begin]:place[end]])
            for label, score, begin, end in parts]  # fmt: skip


def _ids_of(ids):
    """Tokens, of a list or a flat array of any library, as a list of numbers."""
    numbers = ids.tolist() if hasattr(ids, "tolist") else ids
    if not isinstance(numbers, (list, tuple, range)):
        raise TypeError(f"ids: a {type(ids).__name__} (allowed: a list or a flat array of integers)")
    for each in numbers:
        if type(each) is not int or not 0 <= each < 2**31:
            raise TypeError(f"ids: {each!r} is no token (allowed: a list or a flat array of integers from 0)")
    return list(numbers)


_JSON = re.compile(r'\s*(\[\s*[\]{]|\{\s*"messages")')


def _messages_of(messages):
    """Messages as JSON. A text that is none is what the user says, a dict with a role one message."""
    if isinstance(messages, str):
        return messages if _JSON.match(messages) else _messages_of([{"role": "user", "content": messages}])
    if not isinstance(messages, (list, tuple, dict)):
        raise TypeError(f"the messages are a {type(messages).__name__} (allowed: a str, or a list of dicts with role and content)")
    return json.dumps([messages] if "role" in messages else messages)


_OPTIONS = "max_tokens stop temperature top_k top_p min_p repetition_penalty seed grammar schema".split()


def _options_of(options):
    if unknown := [name for name in options if name not in _OPTIONS]:
        raise TypeError(f"there is no option {unknown[0]!r} of an answer (allowed: {', '.join(_OPTIONS)})")
    schema = options.get("schema", "")
    return _core.GenerateOptions(**({**options, "schema": json.dumps(schema)} if not isinstance(schema, str) else options))


class _Turn:
    """Whose turn it is: a lock, in a child of the process a new one, as the thread that has the old one is not there."""

    all: "weakref.WeakSet[_Turn]" = weakref.WeakSet()

    def __init__(self):
        self.lock = threading.RLock()
        self.all.add(self)


def _begin_child():
    for turn in _Turn.all:
        turn.lock = threading.RLock()


os.register_at_fork(after_in_child=_begin_child)


def _in_turn(method):
    """A method of a model, which is of one thread at a time; others wait. A callback of the same thread may come back in."""

    @functools.wraps(method)
    def waiting(self, *arguments, **options):
        with self._turn.lock:
            return method(self, *arguments, **options)

    return waiting


class Generation:
    """An answer in the making: an iterator of pieces of text, for `async for` too."""

    def __init__(self, core, turn):
        self._core, self._turn = core, turn

    def __iter__(self):
        return self

    @_in_turn
    def __next__(self) -> str:
        return next(self._core)

    def __aiter__(self):
        return self

    async def __anext__(self) -> str:
        """The next piece, computed by another thread while others wait."""
        import asyncio

        piece = await asyncio.to_thread(next, self, None)
        if piece is None:
            raise StopAsyncIteration
        return piece

    @property
    def ids(self):
        """Tokens of the answer so far."""
        return self._core.ids

    @property
    def finish_reason(self) -> str:
        return self._core.finish_reason


class Model(_Opened):
    """A language model with one cache of tokens, the conversation so far: a GGUF file, or a folder of Hugging Face. Without `precision` its
    products are computed in what suits its weights. `adapters` are paths, or pairs of a path and a scale; `cache` is the type of its cache:
    usual, f32, f16, bf16 or q8. The file of an encoder or a reranker gives a Model that embeds or reranks."""

    def __init__(self, path, threads=0, precision=None, context=0, session=None, exact=False, adapters=(), cache="usual", device=""):
        adapters = _absolute(adapters)
        super().__init__(path, dict(threads=threads, precision=precision, context=context, exact=exact, adapters=adapters, cache=cache, device=device),
                         session)  # fmt: skip
        self._session = session or _session(threads, precision, device)
        self._turn = _Turn()
        self._core = None
        try:
            self._core = _core.Model._open(path, self._session, context, adapters=adapters, cache=cache, exact=exact)
        except Error:
            if not self._encodes():
                raise

    def _encodes(self):
        """Whether it is no language model, but one of encoders."""
        for name in ("_encoder", "_reranker"):
            try:
                getattr(self, name)
                return True
            except Error:
                pass
        return False

    @functools.cached_property
    def _encoder(self):
        return SentenceEncoder(self.path, self._session, adapters=self._options["adapters"])

    @functools.cached_property
    def _reranker(self):
        return Reranker(self.path, self._session, adapters=self._options["adapters"])

    @property
    def _language(self):
        if self._core is None:
            raise Error(f"{self.path}: it is no language model (allowed: embed, rerank)")
        return self._core

    @_in_turn
    def generate(self, prompt, **options):
        """An iterator of the answer's pieces of text, for `async for` too. The prompt is a text, or a list or an array of its tokens, to which
        none are added. Options: max_tokens, stop, temperature, top_k, top_p, min_p, repetition_penalty, seed, grammar (GBNF), schema (JSON)."""
        prompt = prompt if isinstance(prompt, str) else _ids_of(prompt)
        return Generation(self._language._generate(prompt, _options_of(options)), self._turn)

    def chat(self, messages, tools=None, **options):
        """The same for a conversation: a list of dicts with role and content, or a text, which is one message of the user."""
        return self.generate(self.chat_prompt(messages, tools), **options)

    def chat_prompt(self, messages, tools=None):
        """The prompt for messages, a list of dicts, the same as JSON, or a text of the user, as the model's own template writes it."""
        return self._language.chat_prompt(_messages_of(messages), tools if tools is None or isinstance(tools, str) else json.dumps(tools))

    @_in_turn
    def answers(self, prompts, sequences=8, **options):
        """An Answer with text, ids and finish_reason for each prompt, in order; `sequences` of them are computed at a time. The prompts are texts,
        or all of them tokens."""
        prompts = _texts_of(prompts)
        if not all(isinstance(each, str) for each in prompts):
            prompts = [_ids_of(each) for each in prompts]
        if self._batch is None or self._batch[0] != sequences:
            more = {name: self._options[name] for name in ("context", "adapters", "cache", "exact")}
            self._batch = sequences, _core.Batch._open(self.path, self._session, sequences=sequences, **more)
        return self._batch[1]._generate(prompts, _options_of(options))

    _batch = None

    def embed(self, texts, progress=False):
        """As SentenceEncoder.embed."""
        return self._encoder.embed(texts, progress)

    def rerank(self, query, texts, progress=False):
        """As Reranker.rank."""
        return self._reranker.rank(query, texts, progress)

    @_in_turn
    def perplexity(self, text, context=512, stride=0, progress=False):
        """How well the model predicts a text: a dict of perplexity, error, nll (in nats), tokens and windows."""
        with _progress.shown(progress, "perplexity") as report:
            return self._language.perplexity(text, context, stride, report)

    def tokenize(self, text, add_special_tokens=True):
        """The ids of a text."""
        return self._language.tokenize(text, add_special_tokens)

    def text_of(self, ids):
        """The text of ids."""
        return self._language.text_of(_ids_of(ids))

    @_in_turn
    def logits(self, ids, wanted=1):
        """Appends tokens to the cache and gives the logits behind the last `wanted` of them."""
        return self._language.logits(_ids_of(ids), wanted)

    @_in_turn
    def rewind(self, length):
        """Forgets all but the first tokens of the cache."""
        self._language.rewind(length)

    @_in_turn
    def save_cache(self, file):
        """Writes the cache with its tokens to a file."""
        self._language.save_cache(file)

    @_in_turn
    def load_cache(self, file):
        """Replaces the cache by one that was saved."""
        return self._language.load_cache(file)

    @property
    @_in_turn
    def ids(self):
        """The tokens in the cache."""
        return self._language.ids

    @property
    def vocab_size(self) -> int:
        return self._language.vocab_size

    @property
    def context(self) -> int:
        """Tokens that fit into the cache."""
        return self._language.context


def convert(source, out, type="", progress=False, **options):  # noqa: A002
    """Writes a model in the form that the name of `out` says: .gguf, .safetensors, or a folder. `type` of GGUF weights: a block type or a mix
    such as "Q4_K_M"; `dtype` of floats in safetensors. A dict says what was written. More options: importance, pure, tensor_types, base, threads."""
    with _progress.shown(progress, "convert") as report:
        return _core.convert(source, out, type, progress=report, **options)


def quantize(source, out, type, progress=False, **options):  # noqa: A002
    """Writes a model as a GGUF file with weights of `type`, such as "Q4_K_M"; as convert."""
    with _progress.shown(progress, "quantize") as report:
        return _core.quantize(source, out, type, progress=report, **options)
