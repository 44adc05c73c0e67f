"""A log of hotels as they are: missing review scores, categories, dates, prices that change, a column called rating."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cuolr.logs.log_folder import load_click_log
from cuolr.policies.model_folder import load_policy
from tests.cli.conftest import Run

CITIES = [f"city {i}" for i in range(30)]


def write_hotels(folder: Path, seed: int = 0, cities: list[str] = CITIES) -> None:
    """Tables of hotels and queries, and a log of sessions in which cheap hotels are clicked more often."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    hotels, queries, sessions = 120, 12, 300
    pl.DataFrame(
        {
            "hotel": [f"h{i}" for i in range(hotels)],
            "rating": [None if i % 4 == 0 else str(round(float(rng.uniform(1, 10)), 1)) for i in range(hotels)],
            "pool": [["true", "false", ""][i % 3] for i in range(hotels)],
            "kind": [["hotel", "hostel", "flat", None][i % 4] for i in range(hotels)],
            "city": [cities[i % len(cities)] for i in range(hotels)],
            "opened": [f"20{10 + i % 14}-0{1 + i % 9}-01" for i in range(hotels)],
            "description": [f"a nice place, number {i}" for i in range(hotels)],
        }
    ).write_csv(folder / "hotels.csv")
    pl.DataFrame(
        {"query_id": [f"q{i}" for i in range(queries)], "guests": [1 + i % 4 for i in range(queries)]}
    ).write_csv(folder / "queries.tsv", separator="\t")
    rows = []
    for session in range(sessions):
        query = int(rng.integers(queries))
        for position, hotel in enumerate(query * 10 + rng.permutation(10)[:5], start=1):
            price = float(rng.choice([80, 120]))
            click = int(rng.random() < (0.6 if price < 100 else 0.1))
            rows.append((f"q{query}", f"s{session:03}", position, f"h{hotel}", click, price))
    names = ["query_id", "session_id", "position", "hotel", "click", "price"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(folder / "log.csv")


def import_command(folder: Path) -> list[object]:
    return [
        "import-log", folder / "log.csv", "--column", "doc_id=hotel", "--document-features", folder / "hotels.csv",
        "--query-features", folder / "queries.tsv", "--impression-features", "price",
    ]  # fmt: skip


def test_what_is_not_usable_is_listed_with_the_flag_that_leaves_it_out(run: Run, tmp_path: Path) -> None:
    write_hotels(tmp_path)
    result = run(*import_command(tmp_path), "--out", tmp_path / "LOG")
    assert result.status == 2
    rating, description = result.err.splitlines()
    assert rating.endswith(
        "if it is a feature, say --allow-column rating, otherwise leave it out with --drop-column rating"
    )
    assert description.startswith("error: column 'description': text with 120 different values for 120 documents")
    assert description.endswith("leave it out with --drop-column description")


@pytest.mark.thorough
def test_hotels_are_imported_trained_on_and_ranked(run: Run, tmp_path: Path) -> None:
    write_hotels(tmp_path)
    allowed = ("--allow-column", "rating", "--drop-column", "description")
    result = run(*import_command(tmp_path), *allowed, "--out", tmp_path / "LOG")
    assert result.status == 0, result.err
    log = load_click_log(tmp_path / "LOG")
    assert log.sessions == 300
    # Each hotel that was shown at both prices is two candidates.
    assert (
        log.candidates.n_documents == pl.read_csv(tmp_path / "log.csv").select("query_id", "hotel", "price").n_unique()
    )

    shown = run("log-info", tmp_path / "LOG").out
    assert [" ".join(line.split()) for line in shown.splitlines() if "category" in line or "date" in line] == [
        "kind category 25.0% 3",
        "city hashed category 0.0% 64",
        "opened date 0.0% –",
    ]
    described = {row["name"]: row for row in json.loads(run("log-info", tmp_path / "LOG", "--json").out)["features"]}
    assert described["rating"]["missing"] == pytest.approx(0.25, abs=0.02)

    train = ("--learner", "lightgbm", "--steps", 20, "--set", "learner.min_documents_per_leaf=10")
    result = run("train", tmp_path / "LOG", "--out", tmp_path / "MODEL", *train)
    assert result.status == 0, result.err
    recipe = load_policy(tmp_path / "MODEL").recipe
    assert recipe == log.candidates.recipe
    assert recipe is not None
    assert recipe.dropped == ("description",)

    # At ranking time there is one price, in the table of candidates.
    candidates = pl.DataFrame(
        {"query_id": ["q0"] * 4, "hotel": ["h1", "h2", "h3", "h4"], "price": [120.0, 80.0, 120.0, 80.0]}
    )
    candidates.write_csv(tmp_path / "candidates.csv")
    rank = ["rank", tmp_path / "MODEL", "--candidates", tmp_path / "candidates.csv", "--column", "doc_id=hotel"]
    rank += ["--document-features", tmp_path / "hotels.csv", "--out", tmp_path / "out.csv"]
    result = run(*rank)
    assert result.status == 2
    assert result.err.splitlines() == ["error: column 'guests' is missing; the model was trained with it"]
    result = run(*rank, "--query-features", tmp_path / "queries.tsv")
    assert result.status == 0, result.err
    assert set(pl.read_csv(tmp_path / "out.csv")["doc_id"][:2]) == {"h2", "h4"}


@pytest.mark.thorough
def test_the_log_of_next_week_is_encoded_as_the_model(run: Run, tmp_path: Path) -> None:
    write_hotels(tmp_path)
    allowed = ("--allow-column", "rating", "--drop-column", "description")
    run(*import_command(tmp_path), *allowed, "--out", tmp_path / "LOG")
    run("train", tmp_path / "LOG", "--out", tmp_path / "MODEL", "--learner", "naive", "--steps", 5)
    write_hotels(tmp_path / "next", seed=1, cities=CITIES[:10])
    assert run(*import_command(tmp_path / "next"), *allowed, "--out", tmp_path / "OTHER").status == 0
    result = run("assess", tmp_path / "MODEL", tmp_path / "OTHER")
    assert result.status == 2
    assert "column 'city' was encoded" in result.err
    assert "--features-as MODEL" in result.err
    for given in (tmp_path / "MODEL", tmp_path / "LOG"):
        command = (*import_command(tmp_path / "next"), *allowed, "--features-as", given, "--overwrite")
        assert run(*command, "--out", tmp_path / "NEXT").status == 0
        assert run("assess", tmp_path / "MODEL", tmp_path / "NEXT").status in (0, 10, 11)


def test_a_log_without_any_features_cannot_be_trained_on(run: Run, tmp_path: Path) -> None:
    write_hotels(tmp_path)
    result = run("import-log", tmp_path / "log.csv", "--column", "doc_id=hotel", "--out", tmp_path / "LOG")
    assert result.status == 0
    assert "note: the log has no features: it serves for examination, click rates and judgments" in result.err
    assert run("train", tmp_path / "LOG", "--out", tmp_path / "MODEL").status == 2


def test_a_folder_without_a_recipe_is_refused(run: Run, tmp_path: Path) -> None:
    write_hotels(tmp_path)
    result = run(*import_command(tmp_path), "--features-as", tmp_path, "--out", tmp_path / "LOG")
    assert result.status == 2
    assert "has no recipe of features; expected a log or a model whose features have columns" in result.err


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("hotel,", "product_id,", "hotels.csv: column 'doc_id' is missing (did you mean --column doc_id=product_id?)"),
        ("hotel,", "x,", "hotels.csv: column 'doc_id' is missing; if it is called otherwise, say --column doc_id=NAME"),
    ],
)
def test_the_commonest_mistakes_are_told_with_the_flag(
    run: Run, tmp_path: Path, old: str, new: str, problem: str
) -> None:
    write_hotels(tmp_path)
    table = tmp_path / "hotels.csv"
    table.write_text(table.read_text().replace(old, new))
    result = run(*import_command(tmp_path), "--out", tmp_path / "LOG")
    assert result.status == 2
    assert problem in result.err


def test_features_of_documents_alone_are_told_with_their_flag(run: Run, tmp_path: Path) -> None:
    write_hotels(tmp_path)
    result = run(
        *("import-log", tmp_path / "log.csv", "--column", "doc_id=hotel"),
        *("--features", tmp_path / "hotels.csv", "--dry-run"),
    )
    assert result.status == 2
    assert "these are features of documents alone: give them as --document-features" in result.err
