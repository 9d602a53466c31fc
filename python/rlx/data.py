"""Corpora on engines that run functions on batches: Ray, Dask, Spark.

A function here is pickled by the path of its model, which each process opens once, when the first batch comes; processes of a machine map the
same weights. A batch is a list of texts, a dict of columns (Ray Data), or a DataFrame (Dask, Spark)."""
import functools

from ._models import Model, Reranker, SentenceEncoder


@functools.lru_cache(maxsize=None)
def _opened(cls, path, options):
    """The model of this process."""
    return cls(path, **dict(options))


class _OnBatches:
    """`column` has the texts, the column `to` gets the results."""

    def __init__(self, path, column, to, options):
        self.path, self.column, self.to = str(path), column, to
        self.options = tuple(sorted((name, tuple(value) if isinstance(value, list) else value) for name, value in options.items()))

    def __call__(self, batch):
        if isinstance(batch, dict):
            return {**batch, self.to: self.results(*[list(batch[name]) for name in self._columns()])}
        if hasattr(batch, "assign"):
            results = self.results(*[batch[name].tolist() for name in self._columns()])
            return batch.assign(**{self.to: list(results)})
        batch = list(batch)
        return list(self.results(*(zip(*batch) if batch and len(self._columns()) > 1 else [batch])))

    def frames(self, batches):
        """For an iterator of DataFrames, as Spark's mapInPandas gives them."""
        for batch in batches:
            yield self(batch)

    def _columns(self):
        return [self.column]


class Embed(_OnBatches):
    """The embedding of each text. Options are those of rlx.SentenceEncoder."""

    def __init__(self, path, column="text", to="embedding", **options):
        super().__init__(path, column, to, options)

    def results(self, texts):
        return _opened(SentenceEncoder, self.path, self.options).embed([str(text) for text in texts]).numpy()


class Rerank(_OnBatches):
    """How well each text answers the query of the same row. Options are those of rlx.Reranker."""

    def __init__(self, path, query="query", column="text", to="score", **options):
        super().__init__(path, column, to, options)
        self.query = query

    def _columns(self):
        return [self.query, self.column]

    def results(self, queries, texts):
        import numpy

        model = _opened(Reranker, self.path, self.options)
        scores = numpy.zeros(len(texts), numpy.float32)
        for query in dict.fromkeys(queries):
            places = [i for i, each in enumerate(queries) if each == query]
            scores[places] = model.score(str(query), [str(texts[i]) for i in places])
        return scores


class Answer(_OnBatches):
    """The answer to each prompt. `generate` has the options of rlx.Model.generate, all others are those of rlx.Model."""

    def __init__(self, path, column="prompt", to="answer", generate=None, sequences=8, **options):
        super().__init__(path, column, to, options)
        self.generate, self.sequences = dict(generate or {}), sequences

    def results(self, prompts):
        model = _opened(Model, self.path, self.options)
        return [each.text for each in model.answers([str(prompt) for prompt in prompts], sequences=self.sequences, **self.generate)]
