import json
from pathlib import Path

import ir_measures
import numpy as np
import polars as pl
import pytest

from cuolr.data.letor.catalog import find_source, load_source
from cuolr.policies.model_folder import save_policy
from cuolr.supervised.ranksvm import fit_ranksvm
from tests.cli.conftest import Run
from tests.evaluation.one_measure import measure_ranking


@pytest.fixture
def model(tiny: Path, tmp_path: Path) -> Path:
    """A saved linear ranker."""
    save_policy(fit_ranksvm(load_source(find_source(tiny))["train"], fraction=0.1), tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def some_queries(tmp_path: Path) -> Path:
    """Query 1 has a relevant document, query 2 has none."""
    rows = [f"{grade} qid:{query} " + " ".join(f"{j}:{j}" for j in range(1, 11)) for query, grade in ((1, 2), (2, 0))]
    (tmp_path / "some.txt").write_text("\n".join(rows) + "\n")
    return tmp_path / "some.txt"


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
    assert content["fold"] == 1


def test_the_table_says_what_queries_without_a_relevant_document_count(
    run: Run, model: Path, some_queries: Path
) -> None:
    for option, words, mean in (("skip", "skipped", "1.0000"), ("zero", "counted as 0", "0.5000")):
        result = run("evaluate", model, "--data", some_queries, "--without-relevant", option)
        assert result.status == 0, result.err
        assert f"2 queries; 1 without a relevant document, {words}" in result.out
        assert mean in result.out


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json"])
def test_a_value_per_query_and_measure_is_written_and_nothing_for_queries_that_do_not_count(
    run: Run, model: Path, some_queries: Path, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / "new" / f"values{suffix}"
    measures = ("--measures", "ndcg@10,precision@10")
    result = run("evaluate", model, "--data", some_queries, *measures, "--per-query", out)
    assert result.status == 0, result.err
    assert [file.name for file in out.parent.iterdir()] == [out.name]
    if suffix == ".csv":
        assert out.read_text().splitlines() == ["query_id,ndcg@10,precision@10", "1,1.0,0.1", "2,,"]
    elif suffix == ".json":
        assert json.loads(out.read_text()) == [
            {"query_id": "1", "ndcg@10": 1.0, "precision@10": 1 / 10},
            {"query_id": "2", "ndcg@10": None, "precision@10": None},
        ]
    else:
        assert pl.read_parquet(out).rows() == [("1", 1.0, 1 / 10), ("2", None, None)]


def test_the_values_per_query_have_the_mean_that_is_shown(run: Run, tiny: Path, model: Path, tmp_path: Path) -> None:
    measures = ["ndcg@10", "err@5", "map@10"]
    arguments = ("--measures", ",".join(measures), "--per-query", tmp_path / "values.parquet", "--json")
    means = json.loads(run("evaluate", model, "--data", tiny, *arguments).out)["measures"]
    values = pl.read_parquet(tmp_path / "values.parquet")
    assert values["query_id"].to_list() == load_source(find_source(tiny))["test"].candidates.query_ids.tolist()
    assert {measure: values[measure].mean() for measure in measures} == pytest.approx(means)


def test_queries_without_a_relevant_document_have_clicks(run: Run, model: Path, some_queries: Path) -> None:
    for option in ("skip", "zero", "one"):
        arguments = ("--measures", "ndcg@1,clicks:pbm@1", "--without-relevant", option, "--max-grade", 2)
        result = run("evaluate", model, "--data", some_queries, *arguments, "--json")
        assert result.status == 0, result.err
        # Grades 2 of 2, and 0: attractiveness 1, and the noise 0.1.
        assert json.loads(result.out)["measures"]["clicks:pbm@1"] == pytest.approx(0.68 * (1 + 0.1) / 2)
        table = run("evaluate", model, "--data", some_queries, *arguments).out
        assert "(clicks:pbm@1: their own value)" in table


@pytest.mark.parametrize(
    ("options", "scale"),
    [
        ((), 2),
        (("--dataset", "mq2008"), 2),
        (("--dataset", "mslr-web10k"), 4),
        (("--max-grade", 3), 3),
        (("--max-grade", 3, "--dataset", "mslr-web10k"), 3),
    ],
)
def test_the_scale_of_a_file_is_that_of_the_data_set_or_the_one_given_or_told(
    run: Run, model: Path, some_queries: Path, options: tuple[object, ...], scale: int
) -> None:
    result = run("evaluate", model, "--data", some_queries, "--measures", "ndcg@1,err@1", *options, "--json")
    assert result.status == 0, result.err
    assert json.loads(result.out)["measures"]["err@1"] == (2**2 - 1) / 2**scale
    note = "the highest possible grade is not known; err@1 uses 2, the highest that occurs"
    assert (note in result.err) == (not options)
    assert json.loads(result.out)["fold"] is None


def test_the_scale_is_not_told_where_it_does_not_matter_or_is_known(
    run: Run, tiny: Path, model: Path, some_queries: Path
) -> None:
    for arguments in ((some_queries, "--measures", "ndcg@10"), (tiny, "--measures", "err@10,clicks:pbm@3")):
        assert run("evaluate", model, "--data", *arguments).err == ""
    (tiny / "generated.json").unlink()
    assert "clicks:pbm@3 uses 2" in run("evaluate", model, "--data", tiny, "--measures", "clicks:pbm@3").err
    given = json.loads(run("evaluate", model, "--data", tiny, "--measures", "err@1", "--max-grade", 9, "--json").out)
    known = json.loads(run("evaluate", model, "--data", tiny, "--measures", "err@1", "--json").out)
    occurs = load_source(find_source(tiny))["test"].max_grade
    assert given["measures"]["err@1"] * 2**9 == pytest.approx(known["measures"]["err@1"] * 2**occurs)


def test_grades_beyond_the_scale_are_refused(run: Run, tiny: Path, model: Path, some_queries: Path) -> None:
    for data in (some_queries, tiny):
        result = run("evaluate", model, "--data", data, "--max-grade", 1)
        assert result.status == 2
        assert "expected grades from 0 to 1, found 2; set the maximum with --max-grade" in result.err
    for grade in (0, -1, 31):
        result = run("evaluate", model, "--data", tiny, "--max-grade", grade)
        assert result.status == 2
        assert f"--max-grade: expected a whole number from 1 to 30, found {grade}" in result.err


def test_one_file_cannot_hold_two_outputs(run: Run, tmp_path: Path) -> None:
    """Found out before the model or the data is looked for."""
    out = tmp_path / "out.csv"
    for first, second in (("--trec-run", "--qrels"), ("--per-query", "--qrels"), ("--trec-run", "--per-query")):
        result = run("evaluate", tmp_path / "model", "--data", tmp_path, first, out, second, out)
        assert (result.status, len(result.err.splitlines())) == (2, 1)
        assert "out.csv: given for two outputs; choose a different file for each" in result.err


def test_nothing_is_written_where_one_of_the_outputs_cannot_be(run: Run, model: Path, tmp_path: Path) -> None:
    features = " ".join(f"{j}:{j}" for j in range(1, 11))
    (tmp_path / "twice.txt").write_text(f"1 qid:1 {features} # a\n0 qid:1 {features} # a\n")
    files = [tmp_path / name for name in ("values.csv", "out.run", "out.qrels")]
    options = [part for pair in zip(("--per-query", "--trec-run", "--qrels"), files, strict=True) for part in pair]
    for given in (options, options[:4]):
        result = run("evaluate", model, "--data", tmp_path / "twice.txt", *given)
        assert result.status == 2
        assert "a TREC file lists each document of a query once" in result.err
        assert not any(file.exists() for file in files)


def test_a_cutoff_beyond_all_documents_is_no_burden(run: Run, tiny: Path, model: Path) -> None:
    measures = "ndcg@1000000000000,ndcg@1000"
    result = run("evaluate", model, "--data", tiny, "--measures", measures, "--json")
    assert result.status == 0, result.err
    assert len(set(json.loads(result.out)["measures"].values())) == 1


def test_files_are_not_overwritten_unless_asked_for(run: Run, model: Path, some_queries: Path, tmp_path: Path) -> None:
    for option in ("--per-query", "--trec-run", "--qrels"):
        out = tmp_path / f"{option}.csv"
        out.write_text("precious")
        refused = run("evaluate", model, "--data", some_queries, option, out)
        assert (refused.status, refused.out) == (2, "")
        assert out.read_text() == "precious"
        assert run("evaluate", model, "--data", some_queries, option, out, "--overwrite").status == 0
        assert out.read_text() != "precious"


# trec_eval's gain is the grade unless it is told others, and a query without a relevant document counts 0 there. Its
# average precision divides by all relevant documents, as ours does where the list holds all documents.
PEERS = {
    "ndcg@10": ir_measures.nDCG(gains={grade: 2**grade - 1 for grade in range(5)}) @ 10,
    "ndcg-linear@10": ir_measures.nDCG @ 10,
    "map@200": ir_measures.AP(rel=1),
    "mrr@200": ir_measures.RR(rel=1),
    "precision@5": ir_measures.P(rel=1) @ 5,
}


@pytest.mark.parametrize("with_ids", [True, False])
def test_trec_eval_finds_the_same_in_the_run_and_the_qrels(
    run: Run, tiny: Path, model: Path, tmp_path: Path, with_ids: bool
) -> None:
    lines = (tiny / "Fold1" / "test.txt").read_text().splitlines()
    # The first query loses what is relevant in it.
    first = lines[0].split()[1]
    lines = [f"0 {line.split(maxsplit=1)[1]}" if line.split()[1] == first else line for line in lines]
    if with_ids:
        lines = [f"{line} #docid = D{number:05d}" for number, line in enumerate(lines)]
    data, run_file, qrels_file = (tmp_path / name for name in ("data.txt", "out.run", "out.qrels"))
    data.write_text("\n".join(lines) + "\n")
    files = ("--trec-run", run_file, "--qrels", qrels_file, "--per-query", tmp_path / "values.parquet")
    measured = ("--measures", ",".join(PEERS), "--without-relevant", "zero", "--json")
    result = run("evaluate", model, "--data", data, *files, *measured)
    assert result.status == 0, result.err

    trec_qrels = list(ir_measures.read_trec_qrels(str(qrels_file)))
    trec_run = list(ir_measures.read_trec_run(str(run_file)))
    assert len(trec_qrels) == len(trec_run) == len(lines)
    assert all(line.doc_id.startswith("D") == with_ids for line in trec_qrels)
    values = pl.read_parquet(tmp_path / "values.parquet")
    for measure, peer in PEERS.items():
        found = {one.query_id: one.value for one in ir_measures.iter_calc([peer], trec_qrels, trec_run)}
        assert found == pytest.approx(dict(values.select("query_id", measure).iter_rows())), measure
        mean = ir_measures.calc_aggregate([peer], trec_qrels, trec_run)[peer]
        assert json.loads(result.out)["measures"][measure] == pytest.approx(mean)
    assert found[first.removeprefix("qid:")] == 0


def test_a_run_holds_the_lists_that_were_measured(run: Run, tiny: Path, model: Path, tmp_path: Path) -> None:
    run("evaluate", model, "--data", tiny, "--measures", "ndcg@3,ndcg@5", "--trec-run", tmp_path / "out.run")
    rows = [line.split() for line in (tmp_path / "out.run").read_text().splitlines()]
    test = load_source(find_source(tiny))["test"]
    ranking = fit_ranksvm(load_source(find_source(tiny))["train"], fraction=0.1).rank(test.candidates, 5)
    assert len(rows) == (ranking >= 0).sum()
    assert [row[3:5] for row in rows[:5]] == [["1", "5"], ["2", "4"], ["3", "3"], ["4", "2"], ["5", "1"]]
    assert [int(row[2]) - 1 for row in rows] == ranking[ranking >= 0].tolist()


def test_bad_input_is_one_line(run: Run, tiny: Path, model: Path, tmp_path: Path) -> None:
    for arguments, message in (
        ((model, "--data", tiny, "--measures", "ndgc@10"), "unknown measure 'ndgc' (did you mean 'ndcg'?)"),
        ((tmp_path / "nothing", "--data", tiny), "expected a saved model"),
        (
            (model, "--data", tmp_path / "nothing"),
            "nothing: not found; expected the folder of a data set or a LETOR file",
        ),
        (
            (model, "--data", tiny, "--per-query", tmp_path / "out.txt"),
            "out.txt: expected a name that ends in .csv, .parquet, .json, found '.txt'",
        ),
    ):
        result = run("evaluate", *arguments)
        assert result.status == 2
        assert message in result.err.replace("\n", " ")


def test_grades_of_the_training_part_are_on_the_scale_where_validation_is_cut_from_it(run: Run, tmp_path: Path) -> None:
    """The one query of a grade above the scale stays in the training part."""
    (tmp_path / "mine").mkdir()
    lines = [f"{grade} qid:{query} 1:{grade}\n" for query in range(1, 11) for grade in (0, 1)]
    (tmp_path / "mine" / "test.txt").write_text("".join(lines))
    for query in range(1, 11):
        above = f"3 qid:{query} 1:3\n"
        (tmp_path / "mine" / "train.txt").write_text("".join([*lines[: 2 * query], above, *lines[2 * query :]]))
        result = run("inspect", tmp_path / "mine", "--max-grade", 1)
        assert result.status == 2, query
        assert "train.txt: expected grades from 0 to 1, found 3" in result.err.replace("\n", " ")
