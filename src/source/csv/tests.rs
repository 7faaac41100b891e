use proptest::prelude::*;

use super::*;
use crate::MapDatasetExt;
use crate::dataset::map::{RandomAccess, Source};
use crate::element::{Array, Value};

fn error(text: &str, record: u64) -> String {
    Csv::options().open_bytes(text.as_bytes()).unwrap().read(record).unwrap_err().to_string()
}

#[test]
fn columns_have_types_and_nulls() {
    let text = "id,score,ok,text\n1,0.5,true,oat\n-2,,false,\n3,2,,\"\"\n";
    let source = Csv::options().open_bytes(text.as_bytes()).unwrap();
    let all: Vec<Element> = (0..3).map(|i| source.read(i).unwrap()).collect();
    let row = Element::new().with("id", Array::scalar(1i64)).with("score", Array::scalar(0.5f64));
    assert_eq!(all[0], row.with("ok", Array::bool(true)).with("text", "oat"));
    let row = Element::new().with("id", Array::scalar(-2i64)).with("score", Value::Null);
    assert_eq!(all[1], row.with("ok", Array::bool(false)).with("text", ""));
    assert_eq!((all[2].get("ok"), all[2].text("text").unwrap()), (Some(&Value::Null), ""));
    assert!(source.read(3).is_err());

    let kind = |name| CsvType::from_name(name).unwrap();
    let options = Csv::options().types([("id", kind("f32")), ("score", kind("str"))]).nulls(["", "oat"]);
    let source = options.columns(["text", "score", "id"]).open_bytes(text.as_bytes()).unwrap();
    let row = Element::new().with("text", Value::Null).with("score", "0.5").with("id", Array::scalar(1f32));
    assert_eq!(source.read(0).unwrap(), row);
    assert_eq!(
        (source.read(1).unwrap().get("score"), source.read(2).unwrap().text("text").unwrap()),
        (Some(&Value::Null), "")
    );
}

#[test]
fn what_is_wrong_has_a_line_and_a_byte() {
    let text = "a,b\n1,\"x\ny\"\n\n2\n3,z,4\nfive,x\n";
    assert_eq!(error(text, 1), "a.csv: line 5: byte 14: 1 fields, where there are 2 columns");
    assert_eq!(error(text, 2), "a.csv: line 6: byte 19: 3 fields, where there are 2 columns");
    // The last record made the column text, so it must not take part in the guess.
    let source = Csv::options().infer_rows(3).open_bytes(text.as_bytes()).unwrap();
    let wrong = source.read(3).unwrap_err();
    assert_eq!(wrong.to_string(), "a.csv: line 7: byte 21: column \"a\": \"five\" is no int64");
    assert!(wrong.help_text().unwrap().contains("types: {a: str}"), "{wrong:?}");
    let open = "a,b\n1,2\n3,\"x\ny\n";
    assert_eq!(error(open, 1), "a.csv: line 3: byte 10: the quote that opens here is never closed");
    let bytes = b"a,b\n1,x\n2,\"y\nz\xff\"\n";
    let wrong = Csv::options().open_bytes(bytes).unwrap().read(1).unwrap_err().to_string();
    assert_eq!(wrong, "a.csv: line 4: byte 14: byte 0xff is not UTF-8");
}

#[test]
fn headers_name_the_columns_of_all_files() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("a.csv", "");
    write("b.csv", "\u{feff},text\r\n0,oat\r\n");
    write("c.csv", "\"\",text\n1,rye");
    let source = Csv::open(dir.path()).unwrap();
    let texts = Source::new(source).map(|row| row.text("text").unwrap().to_owned()).collect().unwrap();
    assert_eq!(texts, ["oat", "rye"]);
    assert_eq!(Csv::open(dir.path()).unwrap().read(1).unwrap().array("column_0").unwrap().as_i64(), Some(1));
    write("d.csv", "text,id\nfig,2\n");
    let row = Csv::open(dir.path()).unwrap().read(2).unwrap();
    let expected = Element::new().with("column_0", Value::Null).with("text", "fig").with("id", Array::scalar(2i64));
    assert_eq!(row, expected);
    // Without a header, the first record is taken for the header.
    write("e.csv", "3,nut\n4,pea\n");
    let wrong = Csv::open(dir.path()).unwrap_err().to_string();
    assert!(
        wrong.ends_with("e.csv: line 1: byte 0: no column of 3, nut is in the first files: column_0, text, id"),
        "{wrong}"
    );
    let plain = Csv::options().header(false).open(dir.path().join("c.csv")).unwrap();
    assert_eq!((plain.len(), plain.read(0).unwrap().text("column_1").unwrap()), (2, "text"));
    let named = Csv::options().names(["n", "t"]).open(dir.path().join("c.csv")).unwrap();
    assert_eq!((named.len(), named.read(1).unwrap().text("t").unwrap()), (2, "rye"));
    let replaced = Csv::options().names(["n", "t"]).header(true).open(dir.path().join("c.csv")).unwrap();
    assert_eq!((replaced.len(), replaced.read(0).unwrap().text("t").unwrap()), (1, "rye"));
}

#[test]
fn columns_of_files_go_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("a.csv", "id,text\n1,oat\n2,rye\n");
    write("b.csv", "score,text,id\n0.5,fig,3.5\n");
    write("c.csv", "text\nnut\n");
    let row =
        |id: Value, text: &str, score: Value| Element::new().with("id", id).with("text", text).with("score", score);
    let number = |number: f64| Value::from(Array::scalar(number));
    // Types fit the first records of each file.
    let expected = [
        row(number(1.0), "oat", Value::Null),
        row(number(2.0), "rye", Value::Null),
        row(number(3.5), "fig", number(0.5)),
        row(Value::Null, "nut", Value::Null),
    ];
    let source = Csv::open(dir.path()).unwrap();
    assert_eq!((0..4).map(|at| source.read(at).unwrap()).collect::<Vec<_>>(), expected);
    let some = Csv::options().columns(["score", "text"]).open(dir.path()).unwrap();
    assert_eq!(some.read(3).unwrap(), Element::new().with("score", Value::Null).with("text", "nut"));
    // Rows without a number do not form a batch.
    assert!(some.read_stacked(&[2, 3]).is_none() && some.read_stacked(&[2]).is_some());
    write("d.csv", "id,text\n1\n");
    let ragged = Csv::open(dir.path()).unwrap().read(4).unwrap_err().to_string();
    assert!(ragged.ends_with("d.csv: line 2: byte 9: 1 fields, where there are 2 columns"), "{ragged}");
}

#[test]
fn options_that_cannot_be_are_refused() {
    let open = |options: CsvOptions| options.open_bytes(b"a,b\n1,2\n").unwrap_err().to_string();
    assert!(open(Csv::options().columns(["a", "c"])).contains("no column \"c\""));
    assert!(open(Csv::options().types([("ab", CsvType::Text)])).contains("no column \"ab\""));
    assert!(open(Csv::options().columns(["a", "a"])).contains("column 1 is \"a\" again"));
    assert!(open(Csv::options().columns([""; 0])).contains("empty"));
    assert!(open(Csv::options().delimiter(b'"')).contains("must differ"));
    let twice = Csv::options().open_bytes(b"a,\"a\"\n").unwrap_err().to_string();
    assert_eq!(twice, "a.csv: line 1: byte 2: two columns are named \"a\"");
}

#[test]
fn delimiters_are_found_or_said() {
    let text = |options: CsvOptions, file: &[u8]| options.open_bytes(file).unwrap().read(0).unwrap();
    assert_eq!(text(Csv::options(), b"a;b\n1,5;x\n").text("a").unwrap(), "1,5");
    assert_eq!(text(Csv::options().delimiter(b' '), b"a b\n1 2\n").array("b").unwrap().as_i64(), Some(2));
    assert_eq!(text(Csv::options().quote(None), b"a,b\n\"1,2\"\n").text("a").unwrap(), "\"1");
    assert_eq!(text(Csv::options().quote(Some(b'\'')), b"a,b\n'x,y',2\n").text("a").unwrap(), "x,y");
}

#[test]
fn an_index_is_kept_for_its_dialect() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.csv");
    let row = format!("1,\"{}\n\"\n", "x".repeat(1000));
    std::fs::write(&path, format!("a,b\n{}", row.repeat(9000))).unwrap();
    for _ in 0..2 {
        assert_eq!(Csv::open(&path).unwrap().len(), 9000);
        assert_eq!(Csv::options().quote(None).open(&path).unwrap().len(), 18_000);
    }
    assert!(dir.path().join(".a.csv.gmi").exists());
}

#[cfg(feature = "compress")]
mod streams {
    use std::io::Write;

    use super::*;
    use crate::exec::Runtime;
    use crate::{Cx, DatasetIterator, IterDataset, IterDatasetExt};

    fn gzip(parts: &[&str]) -> Vec<u8> {
        let member = |part: &&str| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(part.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        parts.iter().flat_map(member).collect()
    }

    const TEXTS: [&str; 3] = ["a,b\n1,\"x\r\n\n", "y\"\r\n\n2,z\n", "3,\"\"\"\"\n4,w"];

    #[test]
    fn columns_go_by_name_after_a_resume_too() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("a.csv", "id,text\n1,oat\n");
        write("b.csv", "text,id\nrye,2\nfig,3\n");
        write("c.csv", "text\nnut\n");
        let row = |id: Value, text: &str| Element::new().with("id", id).with("text", text);
        let number = |number: i64| Value::from(Array::scalar(number));
        let expected = [row(number(1), "oat"), row(number(2), "rye"), row(number(3), "fig"), row(Value::Null, "nut")];
        let open = || Csv::options().stream(dir.path()).unwrap().iter(&Runtime::inline()).unwrap();
        let (mut pass, mut cx) = (open(), Cx::default());
        for expected in &expected {
            assert_eq!(pass.next(&mut cx).unwrap().as_ref(), Some(expected));
            let state = pass.state();
            pass = open();
            pass.restore(state, &mut cx).unwrap();
        }
        write("d.csv", "text,more\na,b\n");
        let error = Csv::options().stream(dir.path()).unwrap().collect().unwrap_err().to_string();
        assert!(error.contains("d.csv: line 1: ") && error.contains("the columns are text, more"), "{error}");
    }

    #[test]
    fn a_stream_yields_what_reading_by_number_does() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.csv.gz"), gzip(&TEXTS)).unwrap();
        std::fs::write(dir.path().join("b.csv.zst"), zstd::encode_all(TEXTS.concat().as_bytes(), 3).unwrap()).unwrap();
        let plain = dir.path().join("c.csv");
        std::fs::write(&plain, TEXTS.concat()).unwrap();
        let once = Source::new(Csv::open(&plain).unwrap()).collect().unwrap();
        assert_eq!(once.len(), 4);
        assert_eq!(once[0].text("b").unwrap(), "x\r\n\ny");
        let all = [once.clone(), once.clone(), once].concat();
        let stream = Csv::options().stream(dir.path()).unwrap();
        assert_eq!(stream.collect().unwrap(), all);

        let mut iter = stream.iter(&Runtime::inline()).unwrap();
        let mut cx = Cx::default();
        for taken in 0..=all.len() {
            let mut other = stream.iter(&Runtime::inline()).unwrap();
            other.restore(iter.state(), &mut cx).unwrap();
            let rest: Vec<_> = std::iter::from_fn(|| other.next(&mut cx).unwrap()).collect();
            assert_eq!(rest, all[taken..], "after {taken}");
            iter.next(&mut cx).unwrap();
        }
        let error = Csv::open(dir.path().join("a.csv.gz")).unwrap_err();
        assert!(error.message().contains("gzip") && error.help_text().unwrap().contains("stream"), "{error:?}");
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_behind_it_once_that_is_told() {
        use crate::dataset::iter::{BadRecords, laws};
        let dir = tempfile::tempdir().unwrap();
        // The first damaged file requires a window of 2 GiB; the second has other columns.
        let damaged: [&[u8]; 2] = [b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00", b"a,c\n5,6\n"];
        let files = [("a.csv", b"a,b\n1,2\n".as_slice()), ("b.csv.zst", damaged[0]), ("c.csv", damaged[1])];
        files.iter().for_each(|(name, bytes)| std::fs::write(dir.path().join(name), bytes).unwrap());
        std::fs::write(dir.path().join("d.csv"), "a,b\n3,4\n").unwrap();
        let ds = Csv::options().stream(dir.path()).unwrap();
        assert!(ds.collect().unwrap_err().to_string().contains("b.csv.zst"));
        let few = ds.clone().on_bad_record(BadRecords::Skip { limit: None, consecutive: Some(1) });
        assert!(few.collect().unwrap_err().to_string().contains("c.csv"));
        let read = laws::check(&ds.on_bad_record(BadRecords::skip()));
        assert_eq!(read.iter().map(|e| e.array("b").unwrap().as_i64().unwrap()).collect::<Vec<_>>(), [2, 4]);
    }

    #[test]
    fn one_carriage_return_is_part_of_a_line_end_and_more_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv");
        std::fs::write(&path, "id,text\r\n1,x\r\r\n2,\"y\r\r\nz\"\r\n").unwrap();
        let by_number = Source::new(Csv::open(&path).unwrap()).collect().unwrap();
        assert_eq!(by_number.iter().map(|row| row.text("text").unwrap()).collect::<Vec<_>>(), ["x\r", "y\r\r\nz"]);
        assert_eq!(Csv::options().stream(&path).unwrap().collect().unwrap(), by_number);
    }

    #[test]
    fn what_is_wrong_has_a_line_and_a_byte_of_the_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv.gz");
        std::fs::write(&path, gzip(&["a,b\n1,2\n", "3,\"x\ny\",4\n5,6\n"])).unwrap();
        let stream = Csv::options().stream(&path).unwrap();
        let mut iter = stream.iter(&Runtime::inline()).unwrap();
        let mut cx = Cx::default();
        iter.next(&mut cx).unwrap();
        let error = iter.next(&mut cx).unwrap_err().to_string();
        assert!(
            error.ends_with("a.csv.gz: line 4: byte 16 of the decompressed text: 3 fields, where there are 2 columns"),
            "{error}"
        );
        assert_eq!(iter.next(&mut cx).unwrap().unwrap().text("b").unwrap(), "6");
        let long = format!("a,b\n1,\"{}", "x\n".repeat(1000));
        std::fs::write(&path, gzip(&[&long])).unwrap();
        let error = Csv::options().max_record_bytes(500).stream(&path).unwrap().collect().unwrap_err().to_string();
        assert!(error.contains("line 2: byte 4: the record is longer than 500 B"), "{error}");
    }
}

proptest! {
    #[cfg(feature = "compress")]
    #[test]
    fn records_are_those_of_the_csv_crate(text in "[ab,\"\n]{0,40}") {
        fuzz::as_the_crate_has_it(text.as_bytes());
    }

    /// Quoted fields read back unchanged, with any content.
    #[test]
    fn quoted_fields_come_back(rows in prop::collection::vec(prop::collection::vec("[ab\",;\r\n]{0,6}", 3), 0..6)) {
        let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
        let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
        let text = "x,y,z\n".to_owned() + &rows.iter().map(line).collect::<String>();
        let options = Csv::options().delimiter(b',').types(["x", "y", "z"].map(|name| (name, CsvType::Text)));
        let source = options.open_bytes(text.as_bytes()).unwrap();
        prop_assert_eq!(source.len(), rows.len() as u64);
        for (i, row) in rows.iter().enumerate() {
            let read = source.read(i as u64).unwrap();
            let fields: Vec<&str> = ["x", "y", "z"].map(|name| read.text(name).unwrap()).into();
            prop_assert_eq!(fields, row.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}

/// A batch equals the stacked elements. There is no batch if the elements do not stack or a record is invalid.
#[test]
fn fields_go_straight_into_batches() {
    use crate::element::Stack;
    let text = "id,score,text\n1,0.5,oat\n-2,,\n3,2,\"\"\n4,five,rye\n5\n6,7,\"a,b\"\n";
    let types = [("score", CsvType::from_name("f64").unwrap())];
    let open = |columns: &[&str]| Csv::options().types(types).columns(columns).open_bytes(text.as_bytes()).unwrap();
    for (columns, stacks) in [(&["text", "id"][..], 2), (&["score"], 1), (&["id", "score", "text"], 1)] {
        let mut found = 0;
        for indices in [[0, 1], [2, 0], [5, 5], [1, 0], [1, 1], [3, 0], [0, 3], [4, 0], [0, 4]] {
            let source = open(columns);
            let elements: Result<Vec<Element>> = indices.iter().map(|&index| source.read(index)).collect();
            let expected = elements.and_then(Element::stack).ok();
            found += usize::from(expected.is_some());
            let batch = source.read_stacked(&indices);
            assert!(batch.as_ref().is_none_or(|batch| (batch.len, batch.bytes) == (2, batch.batch.nbytes())));
            assert_eq!(batch.map(|batch| batch.batch), expected, "{columns:?} {indices:?}");
        }
        assert!(found > stacks, "{columns:?}: {found}");
    }
}

#[cfg(feature = "http")]
#[test]
fn a_length_that_a_server_claims_is_refused() {
    crate::store::tests::is_refused_if_claimed("a.csv", b"a,b\n".repeat(1 << 16), Csv::open);
}
