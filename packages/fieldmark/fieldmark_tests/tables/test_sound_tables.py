"""What BirdNET, Raven, Perch, OpenSoundscape, Audacity, BirdCLEF and MegaDetector write becomes one table."""

import json

import pytest

from fieldmark.errors import InputError
from fieldmark.tables.camera_detections import BOX, read_megadetector, write_megadetector
from fieldmark.tables.raven import write_selections
from fieldmark.tables.sound_tables import parse_sounds, read_sounds, recording_name

HEARD = ("dawn.wav", 3.0, 6.0, "Turdus merula", 0.8123)
# One detection of the same bird as each tool writes it, typed from the source of the tool.
TABLES = {
    "analyzer.csv": "Start (s),End (s),Scientific name,Common name,Confidence,File\n"
    "3.0,6.0,Turdus merula,Eurasian Blackbird,0.8123,dawn.wav\n",
    "r.csv": "filepath,start,end,scientific_name,common_name,confidence,lat,lon,week,overlap,sensitivity,min_conf,"
    "species_list,model\ndawn.wav,3.0,6.0,Turdus merula,Eurasian Blackbird,0.8123,-1,-1,-1,0,1,0.25,,BirdNET\n",
    "kaleidoscope.csv": "INDIR,FOLDER,IN FILE,OFFSET,DURATION,scientific_name,common_name,confidence,lat,lon,week,"
    "overlap,sensitivity\n/data,site,dawn.wav,3.0,3.0,Turdus merula,Eurasian Blackbird,0.8123,-1,-1,-1,0,1\n",
    "birdnet.csv": 'input,start_time,end_time,species_name,confidence\n"dawn.wav","00:00:03.00","00:00:06.00",'
    '"Turdus merula_Eurasian Blackbird",0.812300\n',
    "raven.txt": "Selection\tView\tChannel\tBegin Time (s)\tEnd Time (s)\tLow Freq (Hz)\tHigh Freq (Hz)\tCommon Name\t"
    "Scientific Name\tSpecies Code\tConfidence\tBegin Path\tFile Offset (s)\n"
    "1\tSpectrogram 1\t1\t63.0\t66.0\t0\t15000\tEurasian Blackbird\tTurdus merula\teurbla\t0.8123\tdawn.wav\t3.0\n",
    "dawn.BirdNET.results.txt": "3.0\t6.0\tTurdus merula, Eurasian Blackbird\t0.8123\n",
    "frame.csv": "file,start_time,end_time,Turdus merula,Parus major\ndawn.wav,3.0,6.0,0.8123,\n",
    "fieldmark.csv": "recording,start_s,end_s,label,score\ndawn.wav,3,6,Turdus merula,0.8123\n",
    "run.csv": "dawn.wav;00:00:03-00:00:06;Turdus merula;0.8123\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_every_tool_says_the_same_of_one_detection(tmp_path, name):
    (tmp_path / name).write_text(TABLES[name])
    row = read_sounds(tmp_path / name).rows.row(0, named=True)
    assert recording_name(row["file"]) == "dawn"
    assert (row["start_s"], row["end_s"], row["label"], row["score"]) == HEARD[1:]


def test_windows_of_perch_and_of_birdclef_are_five_seconds(tmp_path):
    perch = parse_sounds(b"filename,timestamp_s,label,logit\na.wav,5.0,amerob,2.5\n", tmp_path / "perch.csv")
    assert perch.rows.select("start_s", "end_s", "score").row(0) == (5.0, 10.0, 2.5)
    frame = parse_sounds(b"row_id,amerob,bkcchi\nsoundscape_1_15,0.25,0.5\n", tmp_path / "submission.csv")
    assert frame.rows.select("file", "start_s", "end_s", "label", "score").rows() == [
        ("soundscape_1", 10.0, 15.0, "amerob", 0.25),
        ("soundscape_1", 10.0, 15.0, "bkcchi", 0.5),
    ]
    assert parse_sounds(b"row_id,birds\na_5,nocall\na_10,amerob\n", tmp_path / "x.csv").rows["start_s"].to_list() == [
        5.0
    ]


def test_a_table_without_a_sound_still_says_that_the_recording_was_heard(tmp_path):
    header = "Selection\tView\tChannel\tBegin Time (s)\tEnd Time (s)\tLow Freq (Hz)\tHigh Freq (Hz)\tSpecies Code\n"
    (tmp_path / "quiet.Table.1.selections.txt").write_text(header)
    (tmp_path / "loud.Table.1.selections.txt").write_text(header + "1\tSpectrogram 1\t1\t0\t1\t0\t9\tnorcar\n")
    table = read_sounds(tmp_path)
    assert set(map(recording_name, table.files)) == {"quiet", "loud"} and table.rows["label"].to_list() == ["norcar"]


def test_a_nocall_of_birdnet_is_no_detection(tmp_path):
    text = TABLES["raven.txt"].replace("Turdus merula", "nocall")
    table = parse_sounds(text.encode(), tmp_path / "raven.txt")
    assert table.rows.is_empty() and table.files == ("dawn.wav",)


def test_labels_of_audacity_keep_their_frequencies(tmp_path):
    table = parse_sounds(b"0.1\t0.4\tSP\n\\\t6441.0\t12296.5\n1.5\t3.0\tCRER 0.75\n", tmp_path / "spinetail.txt")
    assert table.files == ((tmp_path / "spinetail").as_posix(),)
    assert table.rows.select("start_s", "label", "score", "low_hz").rows() == [
        (0.1, "SP", None, 6441.0),
        (1.5, "CRER", 0.75, None),
    ]


def test_selections_that_are_written_are_read_back(tmp_path):
    sounds = parse_sounds(TABLES["analyzer.csv"].encode(), tmp_path / "a.csv").rows
    write_selections(tmp_path / "a.txt", sounds)
    again = read_sounds(tmp_path / "a.txt").rows
    columns = ("file", "start_s", "end_s", "label", "common_name", "score")
    assert again.select(columns).equals(sounds.select(columns))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"when,who\n1,robin\n", "the columns when, who"),
        (b"file,start_s,end_s,label\na,5,2,robin\n", "from 5.0 to 2.0 s"),
        (b"file,start_s,end_s,label\na,one,2,robin\n", "line 2"),
        (b"file,start_s,end_s,label\na,,2,robin\n", "from None to 2.0 s"),
        (b"input,start_time,end_time,species_name,confidence\na,00:01,00:00:03,x,1\n", "'00:01' as start_time"),
        (b"row_id,amerob\nnothing,0.5\n", "the row_id 'nothing'"),
        (b"a;00:00:00-00:00:05;x;0.5\nb;0-5;x;0.5\n", "line 2"),
        (b"0\t1\tx\tloud\n", "'loud'"),
        (b"file,start_s,end_s,label,score\na,1,2,robin,nan\n", "the score nan"),
    ],
)
def test_a_table_at_fault_is_refused_with_what_was_found(tmp_path, data, said):
    with pytest.raises(InputError, match=said):
        parse_sounds(data, tmp_path / "table.txt")


def test_boxes_of_megadetector_are_written_as_they_were_read(tmp_path):
    box = {"category": "2", "conf": 0.92, "bbox": [0.1, 0.2, 0.3, 0.4]}
    document = {
        "images": [{"file": "a/1.jpg", "detections": [box]}, {"file": "a/2.jpg", "failure": "cut", "detections": None}],
        "detection_categories": {"1": "animal", "2": "person", "3": "vehicle"},
    }
    boxes = read_megadetector(json.dumps(document).encode(), tmp_path / "md.json")
    assert boxes.select("file", "label", "score", *BOX).row(0) == ("a/1.jpg", "person", 0.92, 0.1, 0.2, 0.3, 0.4)
    write_megadetector(tmp_path / "out.json", boxes, detector="a test", files=("a/1.jpg", "a/2.jpg"))
    written = json.loads((tmp_path / "out.json").read_text())
    assert [image["detections"] for image in written["images"]] == [[box], []]
    assert written["detection_categories"] == document["detection_categories"]
    assert read_sounds(tmp_path / "out.json").rows.select("file", "label", "score").row(0) == (
        "a/1.jpg",
        "person",
        0.92,
    )
    with pytest.raises(InputError, match="conf 3"):
        read_megadetector(json.dumps(document).replace("0.92", "3").encode(), tmp_path / "md.json")
