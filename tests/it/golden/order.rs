//! Orders: an interpreter of the declared pipelines, and every one of them compared.

use gristmill::dataset::Remainder;
use gristmill::dataset::iter::mix;
use gristmill::dataset::map::{Concatenate, Mix, Range};
use gristmill::element::Stack;
use gristmill::rng::{ElementRng, IndexShuffle};
use gristmill::{BoxIter, BoxMap, Executor, IterDatasetExt, Load, MapDatasetExt, Result};
use serde_json::{Value as Json, json};

/// An element: a number, or what `draw`, `with_index` and `batch` make.
#[derive(Clone, Debug)]
enum Val {
    Int(i64),
    Word(u64),
    List(Vec<Val>),
}

impl Stack for Val {
    type Batch = Val;

    fn stack(items: Vec<Self>) -> Result<Val> {
        Ok(Val::List(items))
    }

    fn padding(&self) -> Self {
        self.clone()
    }
}

impl Val {
    fn int(&self) -> i64 {
        match self {
            Val::Int(x) => *x,
            other => panic!("not a number: {other:?}"),
        }
    }

    fn json(&self) -> Json {
        match self {
            Val::Int(x) => json!(x),
            Val::Word(x) => json!(x),
            Val::List(items) => items.iter().map(Val::json).collect(),
        }
    }
}

enum Pipe {
    Map(BoxMap<Val>),
    Iter(BoxIter<Val>),
}

/// One `[op, args…]`.
struct Op<'a> {
    name: &'a str,
    args: &'a [Json],
}

impl<'a> Op<'a> {
    fn parse(op: &'a Json) -> Self {
        let (name, args) = op.as_array().and_then(|op| op.split_first()).expect("an op is a list");
        Self { name: name.as_str().expect("the first is the name"), args }
    }

    fn int(&self, at: usize) -> i64 {
        self.args[at].as_i64().unwrap_or_else(|| panic!("{}: argument {at} is no integer", self.name))
    }

    fn seed(&self, at: usize) -> Option<u32> {
        self.args.get(at).map(|seed| seed.as_u64().and_then(|s| u32::try_from(s).ok()).expect("a seed has 32 bits"))
    }

    fn bool(&self, at: usize) -> Option<bool> {
        self.args.get(at).map(|b| b.as_bool().expect("a bool"))
    }

    fn pipelines(&self) -> Vec<Pipe> {
        self.args[0].as_array().expect("pipelines").iter().map(build).collect()
    }

    fn weights(&self) -> Vec<f64> {
        self.args[1].as_array().expect("weights").iter().map(|w| w.as_f64().expect("a weight")).collect()
    }
}

fn build(pipeline: &Json) -> Pipe {
    let mut ops = pipeline.as_array().expect("a pipeline is a list").iter().map(Op::parse);
    let first = source(&ops.next().expect("a pipeline has a source"));
    ops.fold(first, |pipe, op| match pipe {
        Pipe::Map(ds) => map_stage(ds, &op),
        Pipe::Iter(ds) => Pipe::Iter(iter_stage(ds, &op)),
    })
}

fn source(op: &Op) -> Pipe {
    let maps =
        || op.pipelines().into_iter().map(|p| if let Pipe::Map(ds) = p { ds } else { panic!("a stream") }).collect();
    if op.name == "iter_mix" {
        let streams =
            op.pipelines().into_iter().map(|p| if let Pipe::Iter(ds) = p { ds } else { panic!("a map dataset") });
        return Pipe::Iter(mix(streams).weights(op.weights()).boxed());
    }
    Pipe::Map(match op.name {
        "range" if op.args.len() == 1 => Range::new(0, op.int(0)).map(Val::Int).boxed(),
        "range" => Range::new(op.int(0), op.int(1)).map(Val::Int).boxed(),
        "concat" => Concatenate::new(maps()).boxed(),
        "mix" => Mix::new(maps()).weights(op.weights()).boxed(),
        other => panic!("unknown source {other}"),
    })
}

fn map_stage(ds: BoxMap<Val>, op: &Op) -> Pipe {
    Pipe::Map(match op.name {
        "seed" => ds.seed(op.seed(0).expect("a seed")).boxed(),
        "shuffle" => ds.shuffle(op.seed(0)).boxed(),
        "window_shuffle" => ds.window_shuffle(op.int(0) as u64, op.seed(1)).boxed(),
        "add" => {
            let k = op.int(0);
            ds.map(move |x| Val::Int(x.int() + k)).boxed()
        }
        "keep_mod" => {
            let (m, r) = (op.int(0), op.int(1));
            ds.filter(move |x| x.int().rem_euclid(m) == r).boxed()
        }
        "draw" => ds
            .random_map(None, |x, rng| Val::List(vec![x, Val::Word(rng.random_raw()), Val::Word(rng.random_raw())]))
            .boxed(),
        "draw_seeded" => ds.random_map(op.seed(0), |x, rng| Val::List(vec![x, Val::Word(rng.random_raw())])).boxed(),
        "repeat" => ds.repeat(op.int(0) as u64).reseed_each_epoch(op.bool(1).unwrap_or(true)).boxed(),
        "slice" => ds.slice_step(op.int(0)..op.int(1), op.int(2)).boxed(),
        "batch" => ds.batch_with(op.int(0) as usize, remainder(op)).boxed(),
        "with_index" => ds.map_with_index(|i, x| Val::List(vec![Val::Word(i.global), x])).boxed(),
        "to_iter" => return Pipe::Iter(ds.to_iter().boxed()),
        other => panic!("unknown op {other} on a map dataset"),
    })
}

fn remainder(op: &Op) -> Remainder {
    if op.bool(1) == Some(true) { Remainder::Drop } else { Remainder::Keep }
}

fn iter_stage(ds: BoxIter<Val>, op: &Op) -> BoxIter<Val> {
    match op.name {
        "iter_window_shuffle" => ds.window_shuffle(op.int(0) as usize, op.seed(1)).boxed(),
        "draw" => {
            let draw =
                |x, rng: &mut ElementRng| Val::List(vec![x, Val::Word(rng.random_raw()), Val::Word(rng.random_raw())]);
            ds.random_map(None, draw).boxed()
        }
        "batch" => ds.batch_with(op.int(0) as usize, remainder(op)).boxed(),
        other => panic!("unknown op {other} on a stream"),
    }
}

/// The first `take` elements of a pipeline.
fn run(pipe: Pipe, take: usize, executor: Executor) -> Result<Json> {
    let stream = match pipe {
        Pipe::Map(ds) => ds.to_iter().boxed(),
        Pipe::Iter(ds) => ds,
    };
    stream.loader().executor(executor).build()?.take(take).map(|element| Ok(element?.json())).collect()
}

#[test]
fn every_pipeline_gives_the_elements_that_grain_gives() {
    let Some(vectors) = super::vectors("order.json") else { return };
    let cases = vectors["cases"].as_array().expect("cases");
    assert!(!cases.is_empty());
    for case in cases {
        let take = case["take"].as_u64().expect("take") as usize;
        for executor in [Executor::Inline, Executor::Threads(2)] {
            let output = run(build(&case["pipeline"]), take, executor);
            let output = output.unwrap_or_else(|e| panic!("{}: {e}", case["name"]));
            assert_eq!(output, case["output"], "{} on {executor}: {}", case["name"], case["pipeline"]);
        }
    }
    println!("{} pipelines", cases.len());
}

#[test]
fn every_index_is_shuffled_to_where_grain_shuffles_it() {
    let Some(vectors) = super::vectors("index_shuffle.json") else { return };
    assert_eq!(vectors["columns"], json!(["index", "max_index", "seed", "rounds", "shuffled"]));
    let rows = vectors["rows"].as_array().expect("rows");
    assert!(!rows.is_empty());
    for row in rows {
        let number = |at: usize| row[at].as_u64().expect("a number");
        let shuffle = IndexShuffle::new(number(1), number(2) as u32, number(3) as u32).unwrap();
        assert_eq!(shuffle.get(number(0)), number(4), "{row}");
    }
}
