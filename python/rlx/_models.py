"""Language models."""
import json

from . import _core


def _open(path, threads=0, precision=None, context=0, session=None, exact=False):
    """Reads, checks and compiles a model. Without `precision` its products are computed in what suits its weights."""
    if session is None and (threads or precision):
        session = _core.Session(threads=threads, precision=precision or "f32")
    return _core.Model._open(path, session, context, exact=exact)


def _generate(self, prompt, **options):
    """An iterator of the answer's pieces of text. Options: max_tokens, stop, temperature, top_k, top_p, min_p, repetition_penalty, seed,
    grammar (GBNF), schema (JSON)."""
    schema = options.get("schema", "")
    if not isinstance(schema, str):
        options["schema"] = json.dumps(schema)
    return self._generate(prompt, _core.GenerateOptions(**options))


def _chat(self, messages, tools=None, **options):
    """The same for a conversation: a list of dicts with role and content."""
    prompt = self.chat_prompt(json.dumps(messages), None if tools is None else json.dumps(tools))
    return self.generate(prompt, **options)


TYPE_CHECKING = False
if TYPE_CHECKING:  # what type checkers read

    class Model(_core.Model):
        open = staticmethod(_open)
        generate = _generate
        chat = _chat

else:
    Model = _core.Model
    Model.open = staticmethod(_open)
    for _name, _method in {"generate": _generate, "chat": _chat}.items():
        _method.__name__ = _name
        setattr(Model, _name, _method)
