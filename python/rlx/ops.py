"""Every function of the registry (`rlx ops` lists them) under its own name. They are made when they are asked for."""
import functools
from keyword import iskeyword

from . import _core
from ._core import Error


@functools.cache
def _overloads():
    table = {}
    for builder in _core.builders():
        table.setdefault(builder["name"], []).append(builder)
    return table


def _initial(parameter):
    """The initial value as Python has it."""
    text = parameter["initial"]
    if parameter["words"]:
        return text
    if text in ("{}", "std::nullopt"):
        return () if parameter["kind"] in ("integers", "numbers", "sizes") else None
    if text.startswith("{"):
        return tuple(int(item) for item in text[1:-1].split(","))
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def _python_name(name):
    """A name that is a keyword of Python gets an underscore."""
    return f"{name}_" if iskeyword(name) else name


def _reduces(builder):
    """Whether its axes are by themselves all."""
    return {"axes", "keep_dims"} <= {each["name"] for each in builder["parameters"]}


def _over_all(args, kwargs):
    """The arguments of a reduction, with all axes where none are given."""
    if (args[1] if len(args) > 1 else kwargs.get("axes")) is not None or not (args or "x" in kwargs):
        return args, kwargs
    from ._conversions import asarray

    x = args[0] if args else kwargs["x"]
    axes = list(range(asarray(x).ndim))
    return ((x, axes, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "axes": axes})


def _signature(builder):
    import inspect

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters, optional = [], False
    for each in builder["parameters"]:
        optional = optional or not each["required"] or (each["name"] == "axes" and _reduces(builder))
        initial = inspect.Parameter.empty if not optional else None if each["required"] else _initial(each)
        parameters.append(inspect.Parameter(_python_name(each["name"]), kind, default=initial))
    return inspect.Signature(parameters)


def _documentation(overloads):
    """The comments of the overloads, and the words of arguments."""
    texts = []
    for builder in overloads:
        words = [f"{each['name']}: one of {', '.join(each['words'])}" for each in builder["parameters"] if each["words"]]
        text = "\n".join([builder["doc"], *words])
        if text not in texts:
            texts.append(text)
    return "\n\n".join(texts)


def _function(name, overloads):
    reduces = _reduces(overloads[0])
    keywords = {_python_name(each["name"]): each["name"] for each in overloads[0]["parameters"] if iskeyword(each["name"])}

    def function(*args, **kwargs):
        if reduces:
            args, kwargs = _over_all(args, kwargs)
        return _core.apply(name, args, {keywords.get(key, key): value for key, value in kwargs.items()} if keywords else kwargs)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = _documentation(overloads)
    function.__signature__ = _signature(overloads[0])
    return function


_OF_SEGMENTS = ("segment_max", "segment_min", "segment_prod", "segment_sum")  # jax.ops has them


def __getattr__(name):
    if name in _OF_SEGMENTS:
        from . import _places

        return getattr(_places, name)
    overloads = None if name.startswith("__") else _overloads().get(name)
    if overloads is None:
        raise AttributeError(f"module 'rlx.ops' has no attribute {name!r}")
    function = globals()[name] = _function(name, overloads)
    return function


def __dir__():
    return sorted(_overloads())


def call(name, *args, **kwargs):
    """A function by its name, with an Error that names near ones where there is none."""
    return _core.apply(name, args, kwargs)


__all__ = ["call", "Error"]
