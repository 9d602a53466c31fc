"""A corpus on two workers of one machine, by Ray Data, Ray Serve and Dask: the bits of one process, in order, and complete when a worker dies."""
import os
import signal
import sys

import numpy as np
import pytest

import rlx
from rlx.data import Answer, Embed

ray = pytest.importorskip("ray")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
import models_test  # noqa: E402

TEXTS = [f"a {'cat dog bird fish'.split()[i % 4]} number {i}" for i in range(400)]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return str(models_test.encoder_folder(tmp_path_factory.mktemp("encoder")))


@pytest.fixture(scope="module")
def expected(encoder):
    return rlx.SentenceEncoder.open(encoder, threads=1).embed(TEXTS).numpy()


@pytest.fixture(scope="module", autouse=True)
def cluster():
    os.environ["PYTHONPATH"] = os.pathsep.join(each for each in sys.path if each)  # workers inherit it
    ray.init(num_cpus=4, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False)
    ray.data.DataContext.get_current().execution_options.preserve_order = True  # not so by itself
    yield
    ray.shutdown()


def rows_of(dataset):
    return np.stack([row["embedding"] for row in dataset.take_all()])


def test_ray_data_gives_the_bits_of_one_process(encoder, expected):
    dataset = ray.data.from_items([{"text": text} for text in TEXTS], override_num_blocks=16)
    embedded = dataset.map_batches(Embed, fn_constructor_args=(encoder,), fn_constructor_kwargs={"threads": 1}, batch_size=32, compute=ray.data.ActorPoolStrategy(size=2))
    assert np.array_equal(rows_of(embedded), expected)


class DiesOnce(Embed):
    """A worker that is killed in the middle, the first time."""

    def __init__(self, path, mark, **options):
        super().__init__(path, **options)
        self.mark = mark

    def __call__(self, batch):
        if TEXTS[200] in list(batch["text"]) and not os.path.exists(self.mark):
            open(self.mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(batch)


def test_a_worker_that_is_killed_is_replaced(encoder, expected, tmp_path):
    dataset = ray.data.from_items([{"text": text} for text in TEXTS], override_num_blocks=16)
    embedded = dataset.map_batches(DiesOnce, fn_constructor_args=(encoder, str(tmp_path / "died")), fn_constructor_kwargs={"threads": 1}, batch_size=32,
                                   compute=ray.data.ActorPoolStrategy(size=2), max_restarts=-1, max_task_retries=-1)  # fmt: skip
    assert np.array_equal(rows_of(embedded), expected) and (tmp_path / "died").exists()


def test_workers_map_the_same_weights(encoder):
    @ray.remote
    class Worker:
        def __init__(self, model):
            self.model = model

        def mapped(self):
            with open("/proc/self/maps", encoding="utf-8") as maps:
                return [line.split()[1] for line in maps if line.rstrip().endswith("model.safetensors")]

    model = rlx.SentenceEncoder.open(encoder, threads=1)  # pickled by its path
    for worker in [Worker.remote(model) for _ in range(2)]:
        rights = ray.get(worker.mapped.remote())
        assert rights and all("w" not in each for each in rights)


def test_ray_data_answers_prompts(tmp_path_factory):
    folder = str(models_test.folder_of_words(tmp_path_factory.mktemp("llama")))
    prompts = [f"w{i} w{i + 1}" for i in range(24)]
    answer = Answer(folder, generate={"max_tokens": 4}, threads=1)
    dataset = ray.data.from_items([{"prompt": prompt} for prompt in prompts], override_num_blocks=16)
    answered = dataset.map_batches(Answer, fn_constructor_args=(folder,), fn_constructor_kwargs={"generate": {"max_tokens": 4}, "threads": 1}, batch_size=8,
                                   compute=ray.data.ActorPoolStrategy(size=2))  # fmt: skip
    assert [row["answer"] for row in answered.take_all()] == answer(prompts)


def test_ray_serve_batches_requests(encoder, expected):
    from ray import serve

    @serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 0.5})
    class Embedder:
        def __init__(self, path):
            self.embed, self.largest = Embed(path, threads=1), 0

        @serve.batch(max_batch_size=16, batch_wait_timeout_s=0.05)
        async def __call__(self, texts):
            self.largest = max(self.largest, len(texts))
            return [(row, self.largest) for row in self.embed(texts)]

    serve.start(proxy_location="Disabled")  # no requests by HTTP
    handle = serve.run(Embedder.bind(encoder))
    results = [reply.result(timeout_s=120) for reply in [handle.remote(text) for text in TEXTS[:64]]]
    assert np.array_equal([row for row, _ in results], expected[:64]) and max(size for _, size in results) > 1
    serve.shutdown()


def test_dask_calls_the_same_function(encoder, expected):
    bag = pytest.importorskip("dask.bag")
    import pandas

    embed = Embed(encoder, threads=1)
    rows = bag.from_sequence(TEXTS[:64], npartitions=4).map_partitions(embed).compute(scheduler="processes", num_workers=2)
    assert np.array_equal(rows, expected[:64])
    frames = list(embed.frames(pandas.DataFrame({"text": TEXTS[i : i + 8]}) for i in (0, 8)))  # as Spark's mapInPandas
    assert np.array_equal(np.stack(pandas.concat(frames)["embedding"]), expected[:16])
