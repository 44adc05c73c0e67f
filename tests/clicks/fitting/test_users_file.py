from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import tomli_w

from cuolr.clicks.click_model import read_click_model
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.clicks.fitting.fit_model import fit_click_model, with_errors
from cuolr.clicks.fitting.simulated_users import load_users, pairs_file, save_users
from cuolr.config import read_toml
from cuolr.errors import InputError
from cuolr.logs.click_patterns import ClickPatterns
from tests.small_log import small_candidates, small_log

USERS = [name for name in CLICK_FITS.names() if not CLICK_FITS.get(name).is_baseline]
PATTERNS = ClickPatterns.of(small_log(rows=300))


@pytest.mark.parametrize("name", USERS)
def test_users_are_read_back_with_the_same_click_probabilities(name: str, tmp_path: Path) -> None:
    fitted = with_errors(fit_click_model(name, PATTERNS), PATTERNS, samples=2)
    save_users(fitted, PATTERNS, tmp_path / "users.toml", "LOG")
    users = load_users(tmp_path / "users.toml", PATTERNS.candidates)
    rows = np.where(PATTERNS.where, PATTERNS.pairs[PATTERNS.documents], -1)
    expected = fitted.model.conditional(fitted.values, PATTERNS.documents, PATTERNS.clicks)
    found = users.model.conditional(users.values, rows, PATTERNS.clicks)
    assert found[PATTERNS.where] == pytest.approx(expected[PATTERNS.where], abs=1e-4)
    assert users.known == pytest.approx(len(PATTERNS.pairs) / PATTERNS.candidates.n_documents)


@pytest.mark.parametrize("name", USERS)
def test_the_file_is_a_click_model_for_labelled_documents(name: str, tmp_path: Path) -> None:
    fitted = fit_click_model(name, PATTERNS)
    save_users(fitted, PATTERNS, tmp_path / "users.toml")
    simulated = read_click_model(tmp_path / "users.toml")
    assert type(simulated) is type(fitted.model.click_model(fitted.values))


def test_documents_that_are_not_in_the_file_have_the_learned_mean(tmp_path: Path) -> None:
    fitted = fit_click_model("pbm", PATTERNS)
    save_users(fitted, PATTERNS, tmp_path / "users.toml")
    others = replace(small_candidates(), query_ids=np.array(["q0", *(f"other {i}" for i in range(5))]))
    users = load_users(tmp_path / "users.toml", others)
    rest = users.values["attractiveness"][others.offsets[1] :]
    assert rest == pytest.approx(fitted.unseen["attractiveness"], abs=1e-6)
    assert users.known == pytest.approx(others.sizes[0] / others.n_documents)


def test_a_click_rate_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'ctr' is a click rate, not a model of users"):
        save_users(fit_click_model("ctr", PATTERNS), PATTERNS, tmp_path / "users.toml")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_not_fitted_or_is_damaged_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    path.write_text('name = "pbm"\n')
    with pytest.raises(InputError, match="expected the table 'fit'"):
        load_users(path, PATTERNS.candidates)
    save_users(fit_click_model("pbm", PATTERNS), PATTERNS, path)
    good = read_toml(path)
    for fit, problem in (
        ({**good["fit"], "k": 4}, "expected {'examination': 4} numbers, found {'examination': 5}"),
        ({**good["fit"], "model": "pmb"}, "unknown fitted click model 'pmb'"),
        ({**good["fit"], "values": {"examination": [2.0] * 5}}, "expected 0 to 1, found 2.0"),
        ({**good["fit"], "k": 10**12}, "`k` = at most 1,000, found 'users.parquet' and 1000000000000"),
        ({**good["fit"], "pairs": "../users.parquet"}, "the name of a file in the same folder"),
        ({**good["fit"], "pairs": ""}, "the name of a file in the same folder"),
        ({**good["fit"], "pairs": "a\0b"}, "the name of a file in the same folder"),
    ):
        path.write_text(tomli_w.dumps({**good, "fit": fit}))
        with pytest.raises(InputError) as error:
            load_users(path, PATTERNS.candidates)
        assert problem in str(error.value)
        assert str(error.value).startswith(str(path))
    path.write_text(tomli_w.dumps(good))
    pl.DataFrame({"query_id": ["q"], "doc_id": ["1"]}).write_parquet(pairs_file(path))
    with pytest.raises(InputError, match="found no attractiveness"):
        load_users(path, PATTERNS.candidates)
    pl.DataFrame({"query_id": ["q"], "doc_id": ["1"], "attractiveness": [2.0]}).write_parquet(pairs_file(path))
    with pytest.raises(InputError, match="column 'attractiveness': expected numbers from 0 to 1"):
        load_users(path, PATTERNS.candidates)
    pairs_file(path).unlink()
    with pytest.raises(InputError, match=r"users\.parquet"):
        load_users(path, PATTERNS.candidates)
