import json
from pathlib import Path

import numpy as np
import pytest

from cuolr.data.catalog import find_source, load_source
from cuolr.measures import measure_ranking
from cuolr.policies.linear import fit_ranksvm
from cuolr.policies.store import save_policy
from tests.commands.conftest import Run


@pytest.fixture
def model(tiny: Path, tmp_path: Path) -> Path:
    """A saved linear ranker."""
    save_policy(fit_ranksvm(load_source(find_source(tiny))["train"], fraction=0.1), tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("split", ["train", "vali", "test"])
def test_json_holds_the_mean_of_each_measure(run: Run, tiny: Path, model: Path, split: str) -> None:
    arguments = ("--split", split, "--measures", "ndcg@10, ndcg@3,dcg@5", "--json")
    result = run("evaluate", model, "--data", tiny, *arguments)
    assert result.status == 0, result.err
    content = json.loads(result.out)
    dataset = load_source(find_source(tiny))[split]
    policy = fit_ranksvm(load_source(find_source(tiny))["train"], fraction=0.1)
    ranking = policy.rank(dataset.candidates, 10)
    expected = {m: np.nanmean(measure_ranking(dataset, ranking, m)) for m in ("ndcg@10", "ndcg@3", "dcg@5")}
    assert content["measures"] == pytest.approx(expected)
    assert (content["split"], content["queries"]) == (split, dataset.candidates.n_queries)


def test_the_table_says_what_queries_without_a_relevant_document_count(run: Run, model: Path, tmp_path: Path) -> None:
    rows = [
        f"{grade} qid:{query} " + " ".join(f"{j}:{query + j}" for j in range(1, 11))
        for query, grade in ((1, 2), (2, 0))
    ]
    (tmp_path / "some.txt").write_text("\n".join(rows) + "\n")
    for option, words, mean in (("skip", "skipped", "1.0000"), ("zero", "counted as 0", "0.5000")):
        result = run("evaluate", model, "--data", tmp_path / "some.txt", "--without-relevant", option)
        assert result.status == 0, result.err
        assert f"2 queries; 1 without a relevant document {words}" in result.out
        assert mean in result.out


def test_bad_input_is_one_line(run: Run, tiny: Path, model: Path, tmp_path: Path) -> None:
    for arguments, message in (
        ((model, "--data", tiny, "--measures", "ndgc@10"), "unknown measure 'ndgc' (did you mean 'ndcg'?)"),
        ((tmp_path / "nothing", "--data", tiny), "expected a saved model"),
        ((model, "--data", tmp_path / "nothing"), "expected the folder of a data set or a LETOR file, found nothing"),
    ):
        result = run("evaluate", *arguments)
        assert result.status == 2
        assert message in result.err.replace("\n", " ")
