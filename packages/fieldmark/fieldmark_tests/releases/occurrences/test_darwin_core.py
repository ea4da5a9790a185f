"""Darwin Core Archives: the same rows as python-dwca-reader reads, and what it does not read."""

from __future__ import annotations

import itertools
import zipfile
from pathlib import Path

import pytest
from dwca.read import DwCAReader
from dwca.test.archive_builder import build_archive

import fieldmark
from fieldmark.errors import InputError
from fieldmark.releases.occurrences.darwin_core import archive_folder, read_archive_table, read_descriptor
from fieldmark.storage.release import Release
from fieldmark_tests.places import GOLDEN

HERE = GOLDEN / "occurrences" / "archive"
TERM = "http://rs.tdwg.org/dwc/terms/"
DEFAULTS = {f"{TERM}term2": "by default", f"{TERM}country": "Nowhere"}
DESCRIPTOR = """<archive xmlns="http://rs.tdwg.org/dwc/text/">
  <core {attributes}>
    <files>{files}</files>
    <id index="0"/>
    <field index="1" term="http://rs.tdwg.org/dwc/terms/scientificName"/>
    {more}
  </core>
</archive>"""


def written(
    folder: Path, text: str, *, attributes="", files="<location>a.csv</location>", more="", name="a.csv"
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.xml").write_text(DESCRIPTOR.format(attributes=attributes, files=files, more=more))
    (folder / name).write_bytes(text.encode())
    return folder


def core(folder: Path):
    release = Release(folder)
    return read_archive_table(release, read_descriptor(release).core)


def theirs(path: Path, terms) -> tuple[list, list]:
    """The core and the extensions as python-dwca-reader reads them, by the id of the record."""
    with DwCAReader(str(path)) as archive:
        rows = [(row.id, *(row.data[term] for term in terms)) for row in archive]
        further = [(row.id, tuple(one.data.values())) for row in archive for one in row.extensions]
    return rows, further


@pytest.mark.parametrize(
    ("encoding", "line_end", "separator", "quote", "header"),
    list(itertools.product(["utf-8", "latin-1"], ["\n", "\r\n", "\r"], ["\t", ",", ";"], ["", '"', "'"], [0, 1, 2])),
)
def test_an_archive_made_by_another_tool_reads_as_that_tool_reads_it(
    tmp_path, encoding, line_end, separator, quote, header
):
    text = f"a{separator}b{quote}{quote}c é" if quote else "Bøz"
    build_archive(
        str(tmp_path),
        rows=[["1", text, ""], ["2", "x", "y"]],
        encoding=encoding,
        lines_terminated_by=line_end,
        fields_terminated_by=separator,
        fields_enclosed_by=quote,
        ignore_header_lines=header,
        header_rows=[["i", "j", "k"]] * header,
        defaults=DEFAULTS,
        extension=[["1", "Vernon"], ["2", "Vera"], ["1", "Verity"]],
    )
    release = Release(tmp_path)
    archive = read_descriptor(release)
    rows, further = theirs(tmp_path, [field.term for field in archive.core.fields])
    ours = read_archive_table(release, archive.core).select("id", *archive.core.names)
    assert ours.fill_null("").rows() == rows and len(rows) == 2
    names = read_archive_table(release, archive.extensions[0])
    assert sorted(names.select("id", "vernacularName").rows()) == sorted((one, *values) for one, values in further)


def test_the_golden_archive_reads_as_the_other_tool_reads_its_first_file():
    """Of a core in two files the other tool knows the first; ours reads both."""
    release = Release(HERE)
    archive = read_descriptor(release)
    rows, _ = theirs(HERE, [field.term for field in archive.core.fields])
    ours = read_archive_table(release, archive.core)
    assert ours.select("id", *archive.core.names).fill_null("").rows()[: len(rows)] == rows and len(rows) == 4
    assert ours["file"].to_list() == ["occurrence-north.csv"] * 4 + ["occurrence-south.csv"] * 3
    # The remark of the first record holds a line end, so that the second begins in line 4.
    assert ours["line"].to_list() == [2, 4, 5, 6, 2, 3, 4]
    assert ours["occurrenceRemarks"][0] == 'on a log, "rotten",\nnear water'


def test_what_the_descriptor_leaves_out_has_the_default_of_the_text_guide(tmp_path):
    rows = core(written(tmp_path, 'x-1,"Alba alba, L."\nx-2,Alba nigra\n'))
    assert rows.select("id", "scientificName").rows() == [("x-1", "Alba alba, L."), ("x-2", "Alba nigra")]
    assert read_descriptor(Release(tmp_path)).core.row_type == "Occurrence"


def test_a_term_of_two_namespaces_has_the_first_value_there_is(tmp_path):
    more = (
        '<field index="2" term="http://purl.org/dc/terms/license"/>'
        '<field index="3" term="http://purl.org/dc/elements/1.1/license"/>'
    )
    rows = core(written(tmp_path, "1,A b,CC0,\n2,A b,,CC-BY\n3,A b,,\n", more=more))
    assert rows["license"].to_list() == ["CC0", "CC-BY", None]


def test_a_byte_order_mark_and_empty_lines_are_no_part_of_the_rows(tmp_path):
    rows = core(written(tmp_path, "\ufeff1,Alba alba\n\n2,Alba nigra\n\n"))
    assert rows.select("id", "line").rows() == [("1", 1), ("2", 3)]


def test_an_archive_in_a_folder_of_a_zip_is_found_and_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for file in sorted(HERE.iterdir()):
            archive.write(file, f"dwca-golden/{file.name}")
    release = Release(tmp_path / "a.zip", single_file=True)
    assert archive_folder(release) == "dwca-golden"
    inside, outside = fieldmark.dataset("occurrences", tmp_path / "a.zip"), fieldmark.dataset("occurrences", HERE)
    assert inside.observations.equals(outside.observations) and inside.digest == outside.digest
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"attributes": 'fieldsTerminatedBy="||"'}, r"fieldsTerminatedBy '\|\|', expected one ASCII character"),
        ({"attributes": 'linesTerminatedBy="EOL"'}, "linesTerminatedBy 'EOL', expected"),
        ({"attributes": 'encoding="klingon"'}, "the encoding 'klingon', expected one that is known"),
        ({"attributes": 'ignoreHeaderLines="one"'}, "ignoreHeaderLines 'one', expected a whole number"),
        ({"files": ""}, "no file for the core"),
        ({"files": "<location>../a.csv</location>"}, "'../a.csv', expected one inside the archive"),
        ({"files": "<location>https://x.example/a.csv</location>"}, "Nothing is fetched from elsewhere"),
        ({"files": "<location>b.csv</location>"}, "'b.csv', which is not there"),
        ({"more": '<field index="x" term="t"/>'}, "the index 'x', expected a whole number from 0"),
        ({"more": '<field index="2"/>'}, "a field without a term"),
        ({"more": '<field index="2" term="http://rs.tdwg.org/dwc/terms/scientificName"/>'}, "twice in the core"),
    ],
)
def test_a_descriptor_that_cannot_be_followed_is_refused_in_a_sentence(tmp_path, options, sentence):
    folder = written(tmp_path, "1,Alba alba\n", **options)
    with pytest.raises(InputError, match=sentence) as refused:
        read_descriptor(Release(folder))
    assert str(refused.value).startswith(str(folder / "meta.xml"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<archive", "no well-formed XML"),
        ("<html/>", "an element html, expected archive"),
        ('<archive xmlns="http://rs.tdwg.org/dwc/text/"/>', "0 elements core, expected one"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><archive xmlns="http://rs.tdwg.org/dwc/text/"/>', "a document type"),
    ],
)
def test_what_is_no_descriptor_is_refused(tmp_path, text, sentence):
    (tmp_path / "meta.xml").write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_descriptor(Release(tmp_path))


def test_a_column_that_the_file_does_not_have_is_refused(tmp_path):
    folder = written(tmp_path, "1,Alba alba\n", more='<field index="7" term="http://rs.tdwg.org/dwc/terms/country"/>')
    with pytest.raises(InputError, match="2 fields in a line, expected at least 8"):
        core(folder)


def test_a_line_with_more_fields_than_the_first_is_refused_with_its_number(tmp_path):
    with pytest.raises(InputError, match=r"a.csv, line 3: found 3 fields, expected 2"):
        core(written(tmp_path, "1,Alba alba\n2,Alba nigra\n3,Alba,alba\n"))


def test_bytes_in_another_encoding_are_refused_with_their_line(tmp_path):
    folder = written(tmp_path, "1,Alba alba\n")
    (folder / "a.csv").write_bytes(b"1,Alba alba\n2,Alba \xe9\n")
    with pytest.raises(InputError, match="line 2: found bytes that are not UTF-8"):
        core(folder)


EVENTS = """<archive xmlns="http://rs.tdwg.org/dwc/text/">
  <core fieldsTerminatedBy="\\t" ignoreHeaderLines="1" rowType="http://rs.tdwg.org/dwc/terms/Event">
    <files><location>event.txt</location></files><id index="0"/>
    <field index="1" term="http://rs.tdwg.org/dwc/terms/eventDate"/>
    <field index="2" term="http://rs.tdwg.org/dwc/terms/decimalLatitude"/>
    <field index="3" term="http://rs.tdwg.org/dwc/terms/decimalLongitude"/>
  </core>
  <extension fieldsTerminatedBy="\\t" ignoreHeaderLines="1" rowType="http://rs.tdwg.org/dwc/terms/Occurrence">
    <files><location>occurrence.txt</location></files><coreid index="0"/>
    <field index="1" term="http://rs.tdwg.org/dwc/terms/occurrenceID"/>
    <field index="2" term="http://rs.tdwg.org/dwc/terms/scientificName"/>
    <field index="3" term="http://rs.tdwg.org/dwc/terms/eventDate"/>
  </extension>
</archive>"""


def test_occurrences_below_events_have_the_place_and_date_of_their_event(tmp_path):
    (tmp_path / "meta.xml").write_text(EVENTS)
    (tmp_path / "event.txt").write_text("id\tdate\tlat\tlon\ne1\t2020-05-01\t56.5\t10.5\n")
    (tmp_path / "occurrence.txt").write_text("e\to\tn\td\ne1\to1\tAlba alba\t\ne1\to2\tAlba nigra\t2020-05-02\n")
    found = fieldmark.dataset("occurrences", tmp_path).observations.select(
        "observation_id", "label", "event_date", "lat"
    )
    assert found.rows() == [("o1", "Alba alba", "2020-05-01", 56.5), ("o2", "Alba nigra", "2020-05-02", 56.5)]


def test_a_core_of_taxa_is_refused(tmp_path):
    folder = written(tmp_path, "1,Alba alba\n", attributes='rowType="http://rs.tdwg.org/dwc/terms/Taxon"')
    with pytest.raises(InputError, match="a core of Taxon, expected one of Occurrence"):
        fieldmark.dataset("occurrences", folder)
