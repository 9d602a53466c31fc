"""Labels of texts and of their parts, against what transformers' pipelines gave."""
import json
import os
import pickle

import pytest

import rlx

LABELS = os.path.join(os.environ["RLX_FIXTURES"], "labels")


def recorded(name):
    with open(os.path.join(LABELS, name, "texts.json"), encoding="utf-8") as file:
        return json.load(file)["rows"]


def test_texts_have_the_recorded_labels():
    rows = recorded("bert-feelings")
    classifier = pickle.loads(pickle.dumps(rlx.Classifier.open(os.path.join(LABELS, "bert-feelings"))))
    assert classifier.labels == ["NEGATIVE", "neutral, or neither", "POSITIVE"] and not classifier.labels_parts
    single, pairs = ([row for row in rows if isinstance(row["text"], kind)] for kind in (str, list))
    assert len(single) > 3 and len(pairs) > 3
    labelled = classifier.classify([row["text"] for row in single]) + classifier.classify([tuple(row["text"]) for row in pairs])
    for row, labels in zip(single + pairs, labelled):
        assert dict(labels) == pytest.approx(row["labels"], abs=2e-5)  # logits are off by 1e-6
        assert [score for _, score in labels] == sorted((score for _, score in labels), reverse=True)


def test_parts_lie_where_they_were_recorded():
    rows = recorded("roberta-tokens")
    classifier = rlx.Classifier.open(os.path.join(LABELS, "roberta-tokens"))
    assert classifier.labels_parts
    for row, parts in zip(rows, classifier.parts([row["text"] for row in rows])):
        data = row["text"].encode()
        assert [part["label"] for part in parts] == [part["label"] for part in row["labels"]]
        assert [part["text"] for part in parts] == [data[part["begin"]:part["end"]].decode() for part in row["labels"]]
        assert [part["score"] for part in parts] == pytest.approx([part["score"] for part in row["labels"]], abs=2e-5)
        assert all(row["text"][part["begin"]:part["end"]] == part["text"] for part in parts)


def test_what_a_model_is_not_made_for_is_an_error():
    with pytest.raises(rlx.Error, match="the model labels parts of texts"):
        rlx.Classifier.open(os.path.join(LABELS, "bert-tokens")).classify(["a dog"])
    with pytest.raises(TypeError, match="texts: one str"):
        rlx.Classifier.open(os.path.join(LABELS, "bert-tokens")).parts("a dog")
