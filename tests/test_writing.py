"""Files are written whole or not at all."""

import os
import stat

import pyarrow as pa
import pytest

from fragility.tables import check_writable, open_table, write_file, write_table

from .test_tables import SMALL, refused

ROOT = os.geteuid() == 0


def listing(folder):
    return sorted(os.listdir(folder))


def test_text_and_bytes(tmp_path):
    write_file(tmp_path / "a.html", "é\r\n\n")
    write_file(str(tmp_path / "b.bin"), b"\0\xff")
    assert (tmp_path / "a.html").read_bytes() == "é\r\n\n".encode()
    assert (tmp_path / "b.bin").read_bytes() == b"\0\xff"
    write_file(tmp_path / "a.html", "new")
    assert (tmp_path / "a.html").read_text() == "new"
    assert listing(tmp_path) == ["a.html", "b.bin"]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "new", "x")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o640
    (tmp_path / "new").chmod(0o604)
    write_file(tmp_path / "new", "y")
    assert mode(tmp_path / "new") == 0o604


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "real")
    for text in ("first", "second"):
        write_file(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "folder" / "real").read_text() == text
    assert listing(tmp_path / "folder") == ["real"]


def test_a_device_is_not_replaced(tmp_path):
    write_file(os.devnull, "x")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_what_was_there_survives(tmp_path, monkeypatch, error):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def fails(*_):
        raise error

    monkeypatch.setattr(os, "replace", fails)
    for action in (lambda: write_file(path, "new"), lambda: write_table(SMALL, path)):
        if error is OSError:
            refused(action, str(path), "could not be written", "nothing was changed")
        else:
            with pytest.raises(error):
                action()
        assert path.read_text() == "old"
        assert listing(tmp_path) == ["a.csv"]


def test_a_table_that_the_format_cannot_hold(tmp_path):
    refused(lambda: write_table(pa.table({"a": [[1]]}), tmp_path / "a.csv"), "could not be written")
    assert listing(tmp_path) == []


def test_paths_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    folder = tmp_path / "no" / "such"
    for check in (check_writable, lambda path: write_file(path, "x")):
        refused(lambda c=check: c(folder / "a.csv"), f"no folder {str(folder)!r}", "mkdir -p")
        refused(lambda c=check: c(tmp_path), "this is a folder", str(tmp_path / "results.csv"))
        refused(lambda c=check: c(tmp_path / "file" / "a.csv"), "is a file, not a folder")
        refused(lambda c=check: c(""), "not the name of a file")
        refused(lambda c=check: c("x" * 5000), "x")
    refused(lambda: write_table(SMALL, folder / "a.csv"), "mkdir -p")
    refused(lambda: write_table(SMALL, tmp_path / "a.xlsx"), ".csv.gz", ".parquet", "must end in")
    assert listing(tmp_path) == ["file"]


@pytest.mark.skipif(ROOT, reason="root may write everywhere")
def test_no_permission(tmp_path):
    tmp_path.chmod(0o500)
    refused(lambda: check_writable(tmp_path / "a.csv"), "not permitted to write", str(tmp_path))


def test_no_permission_as_root(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    refused(lambda: check_writable(tmp_path / "a.csv"), "not permitted to write", str(tmp_path))


def test_what_can_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_writable("a.csv")
    check_writable(tmp_path / "b.csv")
    (tmp_path / "c.csv").write_text("old")
    check_writable(tmp_path / "c.csv")
    assert listing(tmp_path) == ["c.csv"]


def test_equal_tables_make_equal_files(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table(SMALL, tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert open_table(tmp_path / "a.csv.gz").read().equals(SMALL)
