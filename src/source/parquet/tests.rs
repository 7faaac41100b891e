use super::*;
use crate::element::{Array, Buffer, Value};

fn written(rows: impl Iterator<Item = Element>, options: ParquetWriterOptions) -> Vec<(PathBuf, Content)> {
    let mut writer = ParquetWriter::new(Vec::new(), options).unwrap();
    rows.for_each(|row| writer.write(&row).unwrap());
    vec![("x.parquet".into(), Buffer::copy_from(&writer.finish().unwrap()).into())]
}

/// Rows `0..100`, ten to a row group, sorted by everything.
fn sorted() -> Vec<(PathBuf, Content)> {
    let row = |i: i64| {
        let meta = Element::new().with("url", format!("u{i}").as_str()).with("size", Array::scalar(i as f32));
        Element::new().with("id", Array::scalar(i)).with("name", format!("n{i:03}").as_str()).with("meta", meta)
    };
    written((0..100).map(row), ParquetWriterOptions::new().row_group_rows(10))
}

fn ids(source: &Parquet) -> Vec<i64> {
    (0..source.len()).map(|i| source.read(i).unwrap().array("id").unwrap().as_i64().unwrap()).collect()
}

#[test]
fn row_groups_that_cannot_hold_such_a_row_are_left_out() {
    let open = |condition| Parquet::options().row_groups_where(condition).open_contents(sorted());
    assert_eq!(ids(&open(Condition::column("id").min(25.0).max(31.5)).unwrap()), (20..40).collect::<Vec<_>>());
    assert_eq!(ids(&open(Condition::column("id").max(-1.0)).unwrap()), [0i64; 0]);
    assert_eq!(ids(&open(Condition::column("name").equals("n055")).unwrap()), (50..60).collect::<Vec<_>>());
    let source = open(Condition::column("id").min(95.0)).unwrap();
    assert!(source.identity().ends_with("row groups where id >= 95"), "{}", source.identity());
    for (condition, told) in [
        (Condition::column("di").min(1.0), "no column \"di\"; there are id"),
        (Condition::column("name").min(1.0), "holds text, which is compared with a number"),
        (Condition::column("id").equals("a"), "holds array, which is compared with a text"),
        (Condition::column("meta").min(1.0), "has no order"),
    ] {
        let error = open(condition).unwrap_err();
        assert!(error.message().contains(told) && error.kind() == crate::ErrorKind::Config, "{error}");
    }
}

/// Nulls have no order, and a group of them alone has no statistics.
#[test]
fn row_groups_without_statistics_are_read() {
    let rows = [Value::Null, Value::Null, Array::scalar(7i64).into(), Array::scalar(8i64).into()];
    let rows = rows.map(|value| Element::new().with("id", value));
    let contents = written(
        rows.into_iter(),
        ParquetWriterOptions::new().row_group_rows(2).example(Element::new().with("id", Array::scalar(0i64))),
    );
    let source = Parquet::options().row_groups_where(Condition::column("id").min(9.0)).open_contents(contents).unwrap();
    assert_eq!((source.len(), source.read(0).unwrap().get("id")), (2, Some(&Value::Null)));
}

#[test]
fn fields_of_structs_are_columns() {
    let open = |columns: &[&str]| Parquet::options().columns(columns).open_contents(sorted());
    let row = open(&["meta.url", "id"]).unwrap().read(12).unwrap();
    assert_eq!(row, Element::new().with("meta", Element::new().with("url", "u12")).with("id", Array::scalar(12i64)));
    let row = open(&["meta.size", "meta.url"]).unwrap().read(3).unwrap();
    assert_eq!(row, Element::new().with("meta", Element::new().with("url", "u3").with("size", Array::scalar(3f32))));
    for (columns, told) in [
        (&["meta.ulr"][..], "no column \"meta.ulr\""),
        (&["id.x"], "no column \"id.x\""),
        (&["id", "id"], "named twice"),
        (&["meta.url", "id", "id"], "named twice"),
    ] {
        let error = open(columns).unwrap_err();
        assert!(error.message().contains(told), "{error}");
    }
}
