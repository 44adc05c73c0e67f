import base64
from pathlib import Path

import numpy as np
import pytest

from cuolr.browsing.document_titles import DocumentTitles
from cuolr.errors import InputError
from cuolr.types import Candidates

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CANDIDATES = Candidates(
    np.zeros((3, 1), np.float32), np.array([0, 2, 3]), np.array(["shoes", "hats"]), np.array(["007", "b", "b"])
)


def titles(folder: Path, text: str) -> DocumentTitles:
    (folder / "titles.csv").write_text(text)
    return DocumentTitles.read(folder / "titles.csv", CANDIDATES)


def test_titles_are_found_by_document_and_ids_stay_text(tmp_path: Path) -> None:
    found = titles(tmp_path, "doc_id,title\n007,Running shoe\nz,Not in the log\n")
    assert found.title("shoes", "007") == "Running shoe"
    assert found.title("shoes", "b") == ""
    assert len(found.by_document) == 1


def test_a_title_of_one_query_goes_before_that_of_all(tmp_path: Path) -> None:
    found = titles(tmp_path, "query_id,doc_id,title\nhats,b,A hat\n,b,Any\n")
    assert (found.title("hats", "b"), found.title("shoes", "b")) == ("A hat", "Any")


def test_pictures_are_embedded_by_what_they_are_not_by_their_name(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(PNG)
    found = titles(tmp_path, "doc_id,image\n007,a.jpg\nb,nowhere.png\n")
    assert found.picture("shoes", "007") == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert found.picture("shoes", "b") == ""


@pytest.mark.parametrize("content", [b"<svg onload='alert(1)'/>", b"", PNG + bytes(100_000)])
def test_what_is_no_picture_or_too_large_is_not_embedded(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.png").write_bytes(content)
    assert titles(tmp_path, "doc_id,image\n007,a.png\n").picture("shoes", "007") == ""


@pytest.mark.parametrize("leave", ["name", "link"])
def test_pictures_outside_of_the_folder_are_not_embedded(leave: str, tmp_path: Path) -> None:
    (tmp_path / "private.png").write_bytes(PNG)
    (tmp_path / "shared").mkdir()
    if leave == "link":
        (tmp_path / "shared" / "a.png").symlink_to(tmp_path / "private.png")
    place = "a.png" if leave == "link" else "../private.png"
    assert titles(tmp_path / "shared", f"doc_id,image\n007,{place}\n").picture("shoes", "007") == ""


def test_pictures_within_the_table_are_checked_as_well(tmp_path: Path) -> None:
    good, bad = (base64.b64encode(content).decode() for content in (PNG, b"<svg/>"))
    text = f'doc_id,image\n007,"data:image/png;base64,{good}"\nb,"data:image/svg+xml;base64,{bad}"\n'
    found = titles(tmp_path, text)
    assert found.picture("shoes", "007") == f"data:image/png;base64,{good}"
    assert found.picture("shoes", "b") == ""


def test_a_table_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected the columns doc_id and title \(or image\), found 'id', 'name'"):
        titles(tmp_path, "id,name\n1,x\n")
    with pytest.raises(InputError, match="has no title of a document of the log"):
        titles(tmp_path, "doc_id,title\nz,x\n")
    with pytest.raises(InputError, match="file not found"):
        DocumentTitles.read(tmp_path / "none.csv", CANDIDATES)
