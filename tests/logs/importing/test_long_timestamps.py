from pathlib import Path

import pytest

from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log

ROWS = "query_id,session_id,position,doc_id,click,timestamp\nq,s,1,a,0,{first}\nq,s,2,b,1,5\nq,t,1,a,1,7\n"


def test_a_time_of_too_many_digits_is_a_problem_of_its_session(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(ROWS.format(first=10**25))
    with pytest.raises(InputError, match="timestamp"):
        import_log(tmp_path / "log.csv")
    with pytest.warns(UserWarning, match="timestamp"):
        log = import_log(tmp_path / "log.csv", max_dropped=1.0)
    assert log.session_id is not None
    assert log.session_id.tolist() == ["t"]
