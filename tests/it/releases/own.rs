//! Pipelines with functions, which no pipeline file can say: they stay as they are for as long as there is a release that has states of them.

use gristmill::dataset::Remainder;
use gristmill::dataset::iter::{BadRecords, mix};
use gristmill::dataset::map::Range;
use gristmill::pack::{Packing, RowSpec, WindowPackOptions};
use gristmill::prelude::*;
use gristmill::{Array, BoxIter, Element, Error};

/// A sequence of 1 to 11 tokens, and its number.
fn document(x: i64) -> Element {
    let tokens: Vec<i32> = (0..1 + x * 5 % 11).map(|k| (x * 31 + k) as i32 % 997).collect();
    Element::new().with("tokens", Array::from_vec(tokens)).with("id", Array::scalar(x))
}

fn documents(first: i64, last: i64) -> BoxIter<Element> {
    Range::new(first, last).shuffle(7).map(document).to_iter().boxed()
}

fn id(element: &Element) -> i64 {
    element.array("id").unwrap().as_slice::<i64>().unwrap()[0]
}

/// None to three elements for one.
fn pieces(element: Element) -> Vec<Element> {
    let id = id(&element);
    (0..id % 4).map(|k| document(id * 10 + k)).collect()
}

fn drawn(element: Element, rng: &mut gristmill::rng::ElementRng) -> Element {
    element.with("drawn", Array::scalar(rng.random_raw() as i64))
}

fn sometimes_bad(element: Element) -> gristmill::Result<Element> {
    if id(&element) % 7 == 3 { Err(Error::data("bad")) } else { Ok(element) }
}

/// Their names, and the pipelines.
pub(crate) fn pipelines() -> Vec<(&'static str, BoxIter<Element>)> {
    let pack = || WindowPackOptions::new(RowSpec::new([("tokens", 24)])).window(30);
    vec![
        ("flat_map", documents(0, 90).flat_map(pieces).boxed()),
        ("filter_and_map", documents(0, 90).filter(|e| id(e) % 3 != 0).map(|e| e).window_shuffle(10, 4).boxed()),
        ("random_map", documents(0, 60).random_map(5, drawn).repeat(Some(2)).boxed()),
        ("bad_records", documents(0, 90).try_map(sometimes_bad).on_bad_record(BadRecords::skip()).boxed()),
        ("mix_of_streams", mix([documents(0, 90), documents(500, 560)]).weights([2.0, 1.0]).boxed()),
        (
            "packed_pieces",
            documents(0, 300)
                .flat_map(pieces)
                .window_shuffle(20, 9)
                .window_pack(pack())
                .batch_with(3, Remainder::Keep)
                .boxed(),
        ),
    ]
}
