//! Sequences that come as columns, beside the same as elements.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::dataset::map::{Concatenate, Mix, SourceFacts};
use crate::element::{Buffer, DType, Name, Ragged, RaggedColumn};

/// A row of a table.
#[derive(Clone, Debug)]
enum Row {
    /// Its record cannot be read.
    Bad,
    /// One of its values is null.
    Null,
    /// Cells of each feature.
    Cells(usize, usize),
}

/// A table whose rows are to be had without elements, or not.
struct Table {
    rows: Vec<Row>,
    /// The first token of each row.
    firsts: Vec<i32>,
    is_ragged: bool,
    given: Arc<AtomicUsize>,
}

impl Table {
    fn new(rows: &[Row], is_ragged: bool, given: &Arc<AtomicUsize>) -> Self {
        let firsts = (0..rows.len() as i32).map(|row| 100 * row).collect();
        Self { rows: rows.to_vec(), firsts, is_ragged, given: given.clone() }
    }

    fn tokens(&self, row: usize, len: usize) -> Vec<i32> {
        (self.firsts[row]..).take(len).collect()
    }

    fn mask(row: usize, len: usize) -> Vec<u8> {
        (row..).take(2 * len).map(|n| n as u8).collect()
    }
}

impl RandomAccess for Table {
    type Record = Element;

    fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    fn read(&self, index: u64) -> Result<Element> {
        let row = index as usize;
        match self.rows[row] {
            Row::Bad => Err(Error::data("it cannot be read").record(index)),
            Row::Null => Ok(Element::new().with("tokens", Value::Null).with("mask", Value::Null)),
            Row::Cells(tokens, mask) => {
                let mask = Array::new(DType::U8, &[mask, 2], Buffer::from_vec(Self::mask(row, mask)))?;
                Ok(Element::new().with("tokens", Array::from_vec(self.tokens(row, tokens))).with("mask", mask))
            }
        }
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts { is_native: true, has_columns: true, ..SourceFacts::new("source", "") }
    }

    fn read_ragged(&self, indices: &[u64], names: &[Name]) -> Option<Ragged> {
        let cells = |&index: &u64| match self.rows[index as usize] {
            Row::Cells(tokens, mask) => Some((index as usize, tokens, mask)),
            _ => None,
        };
        let cells: Vec<_> = indices.iter().map(cells).collect::<Option<_>>().filter(|_| self.is_ragged)?;
        let column = |name: &Name| {
            let is_tokens = name == "tokens";
            let (dtype, inner) = if is_tokens { (DType::I32, &[][..]) } else { (DType::U8, &[2][..]) };
            let mut column = RaggedColumn::new(dtype, inner, cells.len());
            for (to, &(row, tokens, mask)) in cells.iter().enumerate() {
                let (memory, len) = match is_tokens {
                    true => (Buffer::from_vec(self.tokens(row, tokens)), tokens),
                    false => (Buffer::from_vec(Self::mask(row, mask)), mask),
                };
                // Windows then contain both copies and views.
                let is_view = indices[0].is_multiple_of(2);
                let memory = if is_view { column.add_view(memory) } else { column.add_memory(memory) };
                column.place(to, memory, 0, len)?;
            }
            Some(column)
        };
        self.given.fetch_add(indices.len(), Ordering::Relaxed);
        let columns = names.iter().map(column).collect::<Option<Vec<_>>>()?;
        columns.into_iter().try_fold(Ragged::new(cells.len()), |rows, column| rows.with_column(column).ok())
    }
}

/// Which features are packed, how, and what becomes of rows that cannot be.
#[derive(Clone, Debug)]
struct Way {
    stage: usize,
    size: usize,
    features: usize,
    over_long: OverLong,
    shuffled: bool,
    skips: bool,
}

fn packed(way: &Way, table: Table) -> BoxIter<Element> {
    let source = Source::new(table);
    let stream = if way.shuffled { source.shuffle(3).boxed() } else { source.boxed() }.to_iter();
    let stream = if way.skips { stream.on_bad_record(BadRecords::skip()) } else { stream };
    let rows = RowSpec::new([("tokens", 12), ("mask", 9)].into_iter().take(way.features));
    let bins = BinPackOptions::new(rows.clone(), way.size).seed(7).over_long(way.over_long);
    let stream = match way.stage {
        0 => stream.first_fit_pack(bins).boxed(),
        1 => stream.best_fit_pack(bins.max_sequences_per_bin(3)).boxed(),
        2 => stream.window_pack(WindowPackOptions::new(rows).window(way.size).over_long(way.over_long)).boxed(),
        3 => stream.concat_then_split_pack(ConcatPackOptions::new(rows)).boxed(),
        _ => stream.concat_then_split_pack(ConcatPackOptions::new(rows).split_full_length_features(false)).boxed(),
    };
    if way.skips { IterDatasetExt::on_bad_record(stream, BadRecords::skip()).boxed() } else { stream }
}

/// Runs a pass: what each step gives, and the state behind it. Where `resume` says so, and nothing was wrong yet, a new pass goes on.
fn steps(dataset: &BoxIter<Element>, mut resume: impl FnMut() -> bool) -> Vec<(Result<Element, String>, String)> {
    let (run, mut cx) = (Runtime::inline(), Cx::default());
    let (mut iter, mut steps, mut failed) = (dataset.iter(&run).unwrap(), Vec::new(), false);
    loop {
        if resume() && !failed {
            let state = serde_json::to_string(&iter.state()).unwrap();
            iter = dataset.iter(&run).unwrap();
            match iter.restore(serde_json::from_str(&state).unwrap(), &mut cx) {
                Ok(()) => assert_eq!(serde_json::to_string(&iter.state()).unwrap(), state),
                Err(error) => return vec![(Err(error.to_string()), state)],
            }
        }
        let step = match iter.next(&mut cx).transpose() {
            None => return steps,
            Some(step) => step.map_err(|error| error.to_string()),
        };
        failed |= step.is_err();
        steps.push((step, serde_json::to_string(&iter.state()).unwrap()));
    }
}

fn ways() -> impl Strategy<Value = Way> {
    let over_long = prop_oneof![Just(OverLong::Error), Just(OverLong::Split), Just(OverLong::Drop)];
    (0usize..5, 1usize..9, 1usize..3, over_long, any::<bool>(), any::<bool>()).prop_map(
        |(stage, size, features, over_long, shuffled, skips)| Way { stage, size, features, over_long, shuffled, skips },
    )
}

fn table() -> impl Strategy<Value = Vec<Row>> {
    let cells = |most: usize| (0..most, 0..most.min(10)).prop_map(|(tokens, mask)| Row::Cells(tokens, mask));
    let mixed = prop_oneof![40 => cells(13), 3 => cells(40), 1 => Just(Row::Null), 1 => Just(Row::Bad)];
    prop_oneof![prop::collection::vec(cells(13), 0..120), prop::collection::vec(mixed, 0..120)]
}

proptest! {
    /// Rows, errors and states are the same whether sequences come as elements or as columns.
    #[test]
    fn rows_without_elements_are_packed_as_elements_are(
        way in ways(),
        rows in table(),
        resume in prop::collection::vec(any::<bool>(), 1..9),
    ) {
        let given = Arc::default();
        let ds = |is_ragged| packed(&way, Table::new(&rows, is_ragged, &given));
        let expected = steps(&ds(false), || false);
        prop_assert_eq!(given.load(Ordering::Relaxed), 0);
        prop_assert_eq!(&steps(&ds(true), || false), &expected);
        let mut resume_again = resume.clone().into_iter().cycle();
        let resumed = steps(&ds(false), || resume_again.next().unwrap());
        let mut resume = resume.into_iter().cycle();
        prop_assert_eq!(steps(&ds(true), || resume.next().unwrap()), resumed);
    }
}

/// What a window packs of two tables, whatever order their rows are in, without those that are bad.
fn ordered(which: usize, features: usize, table: impl Fn() -> Table) -> BoxIter<Element> {
    let source = || Source::new(table());
    let ordered = match which {
        0 => source().boxed(),
        1 => source().shuffle(3).repeat(2).boxed(),
        2 => Mix::new(vec![source().shuffle(5).boxed(), source().boxed()]).boxed(),
        _ => Concatenate::new(vec![source().boxed(), source().shuffle(5).boxed()]).boxed(),
    };
    let rows = RowSpec::new([("tokens", 12), ("mask", 9)].into_iter().take(features));
    let options = WindowPackOptions::new(rows).window(8).over_long(OverLong::Split);
    ordered.to_iter().on_bad_record(BadRecords::skip()).window_pack(options).boxed()
}

proptest! {
    /// A plan whose keys come out of columns is the one whose keys come of elements.
    #[test]
    fn keys_of_columns_are_those_of_elements(rows in table(), which in 0usize..4, features in 1usize..3) {
        let given = Arc::default();
        let planned = |is_ragged| {
            let ds = ordered(which, features, || Table::new(&rows, is_ragged, &given));
            planned::rest(&mut planned::plan(&ds), &[5])
        };
        let expected = planned(false);
        prop_assert_eq!(given.load(Ordering::Relaxed), 0);
        prop_assert!(planned(true) == expected);
        let is_whole = rows.iter().all(|row| matches!(row, Row::Cells(..)));
        prop_assert!(!is_whole || given.load(Ordering::Relaxed) >= rows.len(), "{:?} of {}", given, rows.len());
    }
}

#[test]
fn sequences_of_columns_become_rows_without_elements() {
    let rows: Vec<Row> = (0..3000).map(|n| Row::Cells(n % 13, n % 5)).collect();
    for stage in 0..5 {
        let given = Arc::default();
        let way = Way { stage, size: 8, features: 2, over_long: OverLong::Error, shuffled: true, skips: false };
        let all = steps(&packed(&way, Table::new(&rows, true, &given)), || false);
        assert!(all.iter().all(|(step, _)| step.is_ok()));
        // All but the first of them, which shows what the columns are, and those that were read with it.
        assert!(given.load(Ordering::Relaxed) > 1500, "{stage}: {given:?}");
    }
}
