//! A host that is started again alone, at another batch, while the others wait for it.

use std::path::Path;

use gristmill::part::Exchange;

use super::*;

/// So many batches of those.
const BATCHES: u64 = 500;

fn some(change: impl Fn(i64) -> i64 + Send + Sync + 'static) -> BoxIter<Element> {
    packed(change).limit(BATCHES).boxed()
}

/// The state of all hosts behind so many batches.
fn state(batches: usize) -> Checkpoint {
    let mut loader = some(|x| x).loader().build().unwrap();
    assert_eq!(loader.by_ref().take(batches).filter_map(Result::ok).count(), batches);
    loader.state().unwrap()
}

/// What a host does: from which state on, how many batches, and which document it has otherwise.
#[derive(Clone, Default)]
struct Life {
    from: Option<Checkpoint>,
    steps: Option<u64>,
    odd: Option<i64>,
}

impl Life {
    fn live(&self, index: usize, guard: Box<dyn Exchange>) -> Seen {
        let odd = self.odd;
        let ds = some(move |x| if Some(x) == odd { x + 7 } else { x });
        let loader = ds.loader().part(Part::of(index, 3)).guard(guard).guard_timeout(SOON);
        let loader = match &self.from {
            Some(state) => loader.resume(state.clone()),
            None => loader,
        };
        read(&mut loader.build().unwrap(), self.steps.unwrap_or(u64::MAX))
    }
}

/// Three hosts, of which the second lives several lives, and what the others and each life have seen.
fn lives(
    exchange: &(dyn Fn() -> Box<dyn Exchange> + Sync),
    odd: [Option<i64>; 2],
    lives: &[Life],
) -> (Vec<Seen>, Vec<Seen>) {
    let mut seen = side_by_side(3, |index| match index {
        1 => lives.iter().map(|life| life.live(1, exchange())).collect(),
        _ => vec![Life { odd: odd[index / 2], ..Life::default() }.live(index, exchange())],
    });
    let second = seen.remove(1);
    (seen.into_iter().flatten().collect(), second)
}

/// The ways that tell of a host that was started again.
fn exchanges(folder: &Path) -> [Box<dyn Fn() -> Box<dyn Exchange> + Sync>; 2] {
    let (memory, folder) = (InMemory::new(), folder.to_owned());
    [Box::new(move || Box::new(memory.clone())), Box::new(move || Box::new(SharedFolder::new(&folder)))]
}

fn until(steps: u64) -> Life {
    Life { steps: Some(steps), ..Life::default() }
}

fn from(batches: usize) -> Life {
    Life { from: Some(state(batches)), ..Life::default() }
}

/// At a batch before, amid and at the one that the others wait at; and a second time before it has come there. Rows are those of one host.
#[test]
fn a_host_that_was_started_again_goes_on_with_the_others() {
    let mut whole = some(|x| x).loader().part(Part::whole()).build().unwrap();
    let whole = read(&mut whole, u64::MAX);
    let last = BATCHES as usize;
    for chain in [
        vec![until(200), from(100)],
        vec![until(300), from(0)],
        // The others wait behind batch 256, and know what they have until there.
        vec![until(1), from(256)],
        vec![until(200), Life { steps: Some(40), ..from(150) }, from(130)],
        // Behind its last round, and behind its last batch.
        vec![until(BATCHES - 3), from(last - 300)],
        vec![until(BATCHES - 1), from(last)],
    ] {
        let temp = tempfile::tempdir().unwrap();
        for exchange in exchanges(temp.path()) {
            let (others, own) = lives(&*exchange, [None; 2], &chain);
            assert!(others.iter().all(|one| one.error.is_none() && one.batches == BATCHES), "{others:?}");
            let end = own.last().unwrap();
            assert_eq!((&end.error, end.batches), (&None, BATCHES));
            // Its rows of the last life, and of the batches before.
            let mut sum = RowDigest::default();
            others.iter().chain([end]).for_each(|one| sum.add(one.digest));
            let before = chain.last().unwrap().from.as_ref().unwrap().delivered;
            let mut first = some(|x| x).loader().part(Part::of(1, 3)).build().unwrap();
            sum.add(read(&mut first, before).digest);
            assert_eq!(sum, whole.digest);
        }
    }
}

/// Of what it has had since, and of what the others have had that was not compared yet.
#[test]
fn one_that_comes_back_with_something_else_is_found_where_all_meet() {
    let document = |batch: &Element| i64::from(batch.array("t").unwrap().as_slice::<i32>().unwrap()[0]);
    let document = document(&some(|x| x).loader().build().unwrap().nth(150).unwrap().unwrap());
    let changed = move |x| if x == document { x + 7 } else { x };
    // The batch that it is in.
    let (straight, other) = (some(|x| x).loader().build().unwrap(), some(changed).loader().build().unwrap());
    let batch = straight.zip(other).position(|(one, other)| one.unwrap() != other.unwrap()).unwrap() as u64;
    let near = batch as usize / 128 * 128;
    let odd = |life: Life| Life { odd: Some(document), ..life };
    let of =
        |batch: u64, hosts: &str| format!("hosts disagree: batch {batch} is the first that differs between {hosts}");
    for (odds, chain, expected) in [
        ([None; 2], vec![until(near as u64 + 1), odd(from(near))], of(batch, "hosts 0 and 2 and host 1")),
        // The others differ where it was away.
        ([None, Some(document)], vec![until(near as u64 + 1), from(near + 256)], of(batch, "host 0 and host 2")),
    ] {
        let temp = tempfile::tempdir().unwrap();
        for exchange in exchanges(temp.path()) {
            let (others, own) = lives(&*exchange, odds, &chain);
            for seen in others.iter().chain(own.last()) {
                assert_eq!(seen.error.as_deref(), Some(expected.as_str()));
            }
            assert!(others[0].batches - batch <= 256, "{others:?}");
        }
    }
}

/// A state that is not of this run yet, and another pipeline.
#[test]
fn one_that_cannot_come_back_stops_all() {
    let temp = tempfile::tempdir().unwrap();
    for exchange in exchanges(temp.path()) {
        let (others, own) = lives(&*exchange, [None; 2], &[until(130), from(490)]);
        let expected = "hosts disagree: they are after batch 384 on hosts 0 and 2 and after batch 490 on host 1";
        assert!(
            others.iter().chain(own.last()).all(|seen| seen.error.as_deref() == Some(expected)),
            "{others:?} {own:?}"
        );
    }
    for exchange in exchanges(&temp.path().join("other")) {
        let seen = side_by_side(2, |index| {
            let ds = |seed| {
                let number = |x: i64| Element::new().with("t", Array::scalar(x));
                Range::new(0, 9600).shuffle(seed).map(number).filter(|_| true).to_iter().batch(BATCH).boxed()
            };
            let live = |seed, steps| {
                let loader = ds(seed).loader().part(Part::of(index, 2)).guard(exchange()).guard_timeout(SOON);
                read(&mut loader.build().unwrap(), steps)
            };
            if index == 1 {
                assert_eq!(live(1, 200).error, None);
            }
            live(1 + index as u32, u64::MAX)
        });
        let expected = "hosts disagree: stage 1 is `shuffle(seed=1)` on host 0 and `shuffle(seed=2)` on host 1";
        assert!(seen.iter().all(|seen| seen.error.as_deref() == Some(expected)), "{seen:?}");
    }
}

/// Over a folder, hosts are another group while one is away, and meet it again as a new process, which knows nothing of that.
#[test]
fn a_new_process_takes_part_where_hosts_have_come_and_gone() {
    let temp = tempfile::tempdir().unwrap();
    let start = |index, count, at: Option<Checkpoint>| {
        let guard = SharedFolder::new(temp.path());
        let loader = packed(|x| x).loader().part(Part::of(index, count)).guard(guard).guard_timeout(SOON);
        let loader = match at {
            Some(state) => loader.resume(state),
            None => loader,
        };
        loader.build().unwrap()
    };
    let mut hosts: Vec<_> = (0..3).map(|index| start(index, 3, None)).collect();
    for (count, steps) in [(3, 5), (2, 140), (3, 30), (2, 3), (3, 300)] {
        if hosts[2].delivered() != hosts[0].delivered() {
            hosts[2] = start(2, 3, hosts[0].state().ok());
        }
        std::thread::scope(|scope| {
            for (index, host) in hosts.iter_mut().enumerate().take(count) {
                scope.spawn(move || {
                    host.repart(Part::of(index, count)).unwrap();
                    assert_eq!(read(host, steps).error, None);
                });
            }
        });
    }
    assert_eq!(hosts.iter().map(Loader::delivered).collect::<Vec<_>>(), [478; 3]);
    let left = std::fs::read_dir(temp.path().join("of-3")).unwrap().count();
    assert_eq!(left, 2, "the words of one start, and the last rounds");
}
