//! The lineage of delivered rows, compared with the cells of the rows.

use super::planned::packed;
use super::*;
use crate::dataset::Lineage;
use crate::dataset::map::Mix;
use crate::part::Part;
use crate::{Checkpoint, Loader};

/// Documents whose tokens are `1000 * id`, `1000 * id + 1`, ….
fn documents(lens: &[usize]) -> Vec<Element> {
    let element = |(id, &len): (usize, &usize)| {
        let tokens: Vec<i32> = (0..len as i32).map(|at| 1000 * id as i32 + at).collect();
        Element::new().with("tokens", Array::from_vec(tokens)).with("id", Array::scalar(id as i64))
    };
    lens.iter().enumerate().map(element).collect()
}

fn prefix(which: usize, lens: &[usize]) -> BoxIter<Element> {
    let source = || Source::new(documents(lens));
    let id = |element: &Element| element.array("id").unwrap().as_slice::<i64>().unwrap()[0];
    match which {
        0 => source().to_iter().boxed(),
        1 => source().shuffle(3).repeat(2).to_iter().filter(move |element| id(element) % 3 != 0).boxed(),
        2 => Mix::new(vec![source().shuffle(5).boxed(), source().shuffle(9).boxed()]).to_iter().boxed(),
        _ => source().shuffle(1).to_iter().window_shuffle(5, 2).limit(40).boxed(),
    }
}

/// Compares the segments of `lineage` with the cells of a batch.
fn compare(batch: &Element, lineage: &[Lineage], lens: &[usize]) {
    let tokens = batch.array("tokens").unwrap();
    let (rows, width) = (tokens.shape()[0], tokens.shape()[1]);
    let (tokens, ids) = (i32s(batch, "tokens"), i32s(batch, "tokens_segment_ids"));
    assert_eq!(lineage.len(), rows);
    for (row, Lineage { segments, .. }) in lineage.iter().enumerate() {
        let cells = row * width..(row + 1) * width;
        let (tokens, ids) = (&tokens[cells.clone()], &ids[cells]);
        let mut filled = vec![0; width];
        for (number, segment) in (1..).zip(segments) {
            let (of, to) = (segment.tokens.clone().unwrap(), segment.cells.clone().unwrap());
            assert_eq!(of.end - of.start, to.end - to.start);
            assert!(of.end <= lens[segment.index as usize] as u64);
            for (from, cell) in of.zip(to) {
                assert_eq!(tokens[cell as usize], 1000 * segment.index as i32 + from as i32);
                filled[cell as usize] = number;
            }
        }
        assert_eq!(filled, ids);
    }
}

fn loader(ds: &BoxIter<Element>, part: Option<&Part>, state: Option<Checkpoint>) -> Loader<BoxIter<Element>> {
    let mut builder = ds.clone().loader();
    if let Some(part) = part {
        builder = builder.part(part.clone());
    }
    if let Some(state) = state {
        builder = builder.resume(state);
    }
    builder.build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Every cell of every row is found in its document, on each host and after resumes.
    #[test]
    fn segments_are_the_cells_of_rows(
        lens in prop::collection::vec(0usize..30, 1..60),
        which in 0..STAGES,
        before in 0..4usize,
        size in 1usize..20,
        part in prop::option::of(0..2usize),
        resume in 1u64..5,
    ) {
        let ds = packed(which, prefix(before, &lens), size).batch_with(4, Remainder::Drop).boxed();
        let part = part.map(|index| Part::of(index, 2));
        let mut running = loader(&ds, part.as_ref(), None);
        while let Some(batch) = running.next().transpose().unwrap() {
            let lineage = running.lineage().unwrap();
            compare(&batch, &lineage, &lens);
            let numbers = running.rows().map_or_else(|| (0..4).collect(), |rows| rows.iter().collect::<Vec<_>>());
            prop_assert_eq!(lineage.iter().map(|row| row.row as usize).collect::<Vec<_>>(), numbers);
            if running.delivered().is_multiple_of(resume) {
                running = loader(&ds, part.as_ref(), Some(running.state().unwrap()));
                prop_assert!(running.lineage().is_err());
            }
        }
    }
}

#[test]
fn rows_without_a_batch_and_of_pieces_are_found() {
    let lens = [3, 9, 4];
    let mut rows = loader(&packed(0, prefix(0, &lens), 1), None, None);
    let first = rows.next().unwrap().unwrap();
    let lineage = rows.lineage().unwrap();
    assert_eq!(lineage[0].segments.iter().map(|segment| segment.index).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(i32s(&first, "tokens")[..4], [0, 1, 2, 1000]);
    assert_eq!(lineage[0].segments[1].cells, Some(3..12));

    let halves = |element: Element| vec![element.clone(), element];
    let ds = Source::new(documents(&[3; 3])).repeat(2).to_iter().flat_map(halves).batch(5);
    let mut batches = ds.loader().build().unwrap();
    batches.by_ref().take(2).count();
    let found: Vec<_> = batches.lineage().unwrap().into_iter().map(|row| row.segments[0].clone()).collect();
    let found: Vec<_> = found.iter().map(|segment| (segment.record, segment.epoch, segment.piece)).collect();
    assert_eq!(found, [(2, 0, 1), (0, 1, 0), (0, 1, 1), (1, 1, 0), (1, 1, 1)]);
}

#[test]
fn batches_of_a_map_dataset_are_found_by_row() {
    let source = || Source::new((0..10).collect::<Vec<u64>>()).shuffle(4).boxed();
    let mut batches = Mix::new(vec![source(), source()]).batch(4).to_iter().loader().build().unwrap();
    while let Some(batch) = batches.next().transpose().unwrap() {
        let lineage = batches.lineage().unwrap();
        let records: Vec<u64> = lineage.iter().map(|row| row.segments[0].record).collect();
        assert_eq!(records, batch);
    }
}

#[test]
fn a_stream_without_a_plan_is_refused_with_the_stage() {
    let ds = Source::new(documents(&[3; 9])).to_iter().batch(2).rebatch(3, Remainder::Keep);
    let mut batches = ds.loader().build().unwrap();
    assert!(batches.lineage().unwrap_err().message().starts_with("no element was delivered"));
    batches.next().unwrap().unwrap();
    let error = batches.lineage().unwrap_err();
    assert!(error.message().contains("rebatch (stage 3)"), "{error}");
}
