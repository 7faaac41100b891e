//! Hosts that disagree are stopped: all of them, at one batch, by one error; and no host waits for ever.

mod restarted;

use std::path::Path;
use std::task::Poll;
use std::time::{Duration, Instant};

use gristmill::dataset::Remainder;
use gristmill::dataset::map::{Range, Source};
use gristmill::pack::{Packing, RowSpec, WindowPackOptions};
use gristmill::part::{Balance, Cost, Deal, EVERY, InMemory, Part, RowDigest, SharedFolder};
use gristmill::prelude::*;
use gristmill::source::Jsonl;
use gristmill::{Array, BoxIter, Checkpoint, Element, Error, ErrorKind, Executor, Loader, Result};

/// Rows of a global batch.
const BATCH: usize = 12;
const SOON: Duration = Duration::from_secs(60);

/// Packed rows of documents, of which `change` is done on this host: every host decides by the content of all.
fn packed(change: impl Fn(i64) -> i64 + Send + Sync + 'static) -> BoxIter<Element> {
    let document = move |x: i64| {
        let x = change(x);
        Element::new().with("t", Array::from_vec(vec![x as i32; 1 + (x * 5).rem_euclid(7) as usize]))
    };
    let packed = Range::new(0, 40_000).shuffle(3).map(document).to_iter();
    packed
        .window_pack(WindowPackOptions::new(RowSpec::new([("t", 8)])).window(40))
        .batch_with(BATCH, Remainder::Drop)
        .boxed()
}

/// What a host has seen: batches, their digest, and the error that it ended by.
#[derive(Debug, PartialEq)]
struct Seen {
    batches: u64,
    digest: RowDigest,
    error: Option<String>,
}

/// Reads at most `steps` batches.
fn read(loader: &mut Loader<BoxIter<Element>>, steps: u64) -> Seen {
    let mut seen = Seen { batches: loader.delivered(), digest: RowDigest::default(), error: None };
    for _ in 0..steps {
        match loader.next() {
            None => break,
            Some(Ok(batch)) => seen.digest.add_batch(loader.delivered() - 1, loader.rows().unwrap(), &batch),
            Some(Err(error)) => seen.error = Some(error.to_string()),
        }
        seen.batches = loader.delivered();
    }
    seen
}

/// Runs hosts side by side, each on a thread of its own.
fn side_by_side<T: Send>(count: usize, host: impl Fn(usize) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let host = &host;
        let hosts: Vec<_> = (0..count).map(|index| scope.spawn(move || host(index))).collect();
        hosts.into_iter().map(|host| host.join().unwrap()).collect()
    })
}

/// Hosts of as many equal parts, which read to the end.
fn hosts(count: usize, ds: impl Fn(usize) -> BoxIter<Element> + Sync) -> Vec<Seen> {
    let exchange = InMemory::new();
    side_by_side(count, |index| {
        let loader = ds(index).loader().part(Part::of(index, count)).guard(exchange.clone()).guard_timeout(SOON);
        read(&mut loader.build().unwrap(), u64::MAX)
    })
}

/// The one error of all hosts, and the one batch that it came at.
fn told(seen: &[Seen]) -> (&str, u64) {
    let first = seen[0].error.as_deref().expect("they disagree");
    assert!(seen.iter().all(|one| one.error.as_deref() == Some(first) && one.batches == seen[0].batches), "{seen:?}");
    (first, seen[0].batches)
}

#[test]
fn hosts_that_agree_are_left_alone() {
    let mut whole = packed(|x| x).loader().part(Part::whole()).build().unwrap();
    let whole = read(&mut whole, u64::MAX);
    assert!(whole.batches > 4 * EVERY);
    for executor in [Executor::Inline, Executor::Threads(2)] {
        let (exchange, mut sum) = (InMemory::new(), RowDigest::default());
        for seen in side_by_side(3, |index| {
            let loader = packed(|x| x).loader().executor(executor).part(Part::of(index, 3));
            let mut loader = loader.guard(exchange.clone()).guard_timeout(SOON).build().unwrap();
            let seen = read(&mut loader, u64::MAX);
            let report = loader.report().to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(report.contains(&format!("3 hosts agreed up to batch {}", whole.batches)), "{report}");
            seen
        }) {
            assert_eq!((seen.error, seen.batches), (None, whole.batches));
            sum.add(seen.digest);
        }
        assert_eq!(sum, whole.digest);
    }
}

#[test]
fn another_pipeline_is_found_before_the_first_batch() {
    let seeds = hosts(3, |index| {
        let seed = if index == 1 { 8 } else { 7 };
        let number = |x: i64| Element::new().with("t", Array::scalar(x));
        Range::new(0, 99).shuffle(seed).map(number).to_iter().batch(BATCH).boxed()
    });
    let expected = "hosts disagree: stage 1 is `shuffle(seed=7)` on hosts 0 and 2 and `shuffle(seed=8)` on host 1";
    assert_eq!(told(&seeds), (expected, 0));
}

/// Files of one name and one size on each host, of which one has another text.
#[test]
fn another_file_is_found_before_the_first_batch() {
    let temp = tempfile::tempdir().unwrap();
    let write = |folder: &Path, name: &str, word: &str| {
        std::fs::create_dir_all(folder).unwrap();
        let lines: String = (0..24).map(|n| format!("{{\"n\": {n}, \"text\": \"{word}\"}}\n")).collect();
        std::fs::write(folder.join(name), lines).unwrap();
    };
    for (files, expected) in [
        (&["corpus.jsonl"][..], "hosts disagree: source 0 is `jsonl(corpus.jsonl, bytes="),
        (&["a.jsonl", "b.jsonl", "c.jsonl"], "hosts disagree: file 2 of source 0 is `c.jsonl, bytes="),
    ] {
        let folder = |index: usize| temp.path().join(format!("{}-{index}", files.len()));
        for index in 0..3 {
            for (at, file) in files.iter().enumerate() {
                write(&folder(index), file, if index == 2 && at + 1 == files.len() { "olive" } else { "grist" });
            }
        }
        let seen = hosts(3, |index| {
            let file = Jsonl::options().columns(["n"]).open(folder(index)).unwrap();
            Source::new(file).to_iter().batch(BATCH).boxed()
        });
        let (error, batches) = told(&seen);
        assert!(error.starts_with(expected) && error.ends_with(" on host 2"), "{error}");
        assert_eq!((error.matches(" on hosts 0 and 1 and `").count(), batches), (1, 0), "{error}");
    }
}

/// One of three hosts has a function with randomness of its own: from some element on, it changes a token, or the length that plans are made of.
#[test]
fn a_function_with_randomness_of_its_own_is_found_within_256_batches() {
    let random = || Instant::now().elapsed().subsec_nanos() as i64 + fastrand();
    for from in [0, 9_000] {
        for by in [7, 1] {
            let seen = hosts(3, |index| {
                packed(move |x| if index == 2 && x == from { x + by * (1 + random().rem_euclid(1000)) } else { x })
            });
            let (error, batches) = told(&seen);
            let found = error.strip_prefix("hosts disagree: batch ").and_then(|rest| rest.split_once(' '));
            let (batch, rest) = found.unwrap_or_else(|| panic!("{error}"));
            assert_eq!(rest, "is the first that differs between hosts 0 and 1 and host 2");
            let batch: u64 = batch.parse().unwrap();
            assert!(batches > batch && batches - batch <= 256, "{batch}, {batches}");
        }
    }
}

/// A number that is another every time.
fn fastrand() -> i64 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(0) >> 8) as i64
}

/// Also in the batches behind the last round, and where the streams do not end together.
#[test]
fn what_differs_in_the_last_batches_is_found_at_the_end() {
    let numbers = |index: usize, len: i64, drops: bool| {
        let number =
            move |x: i64| Element::new().with("t", Array::scalar(if index == 1 && x == len - 1 { -1 } else { x }));
        let kept = Range::new(0, len).to_iter().filter(move |&x| !(drops && index == 1 && x >= len - 12));
        kept.map(number).batch(BATCH).boxed()
    };
    let seen = hosts(2, |index| numbers(index, 300 * BATCH as i64, false));
    assert_eq!(told(&seen), ("hosts disagree: batch 299 is the first that differs between host 0 and host 1", 300));
    let seen = hosts(2, |index| numbers(index, 300 * BATCH as i64, true));
    assert!(seen[0].error == seen[1].error && (seen[0].batches, seen[1].batches) == (300, 299), "{seen:?}");
    let expected =
        "hosts disagree: they are at the end after batch 300 on host 0 and at the end after batch 299 on host 1";
    assert_eq!(seen[0].error.as_deref(), Some(expected));
}

#[test]
fn a_share_that_nobody_has_is_named() {
    let exchange = InMemory::new();
    let seen = side_by_side(4, |index| {
        let part = Part::of([0, 1, 1, 2][index], 4);
        let loader = packed(|x| x).loader().part(part).guard(exchange.clone().host(index, 4)).guard_timeout(SOON);
        read(&mut loader.build().unwrap(), 3)
    });
    assert_eq!(told(&seen), ("no host has part 3/4, and 1/4 is the part of hosts 1 and 2", 0));
    // Peers that compute on the same rows.
    let exchange = InMemory::new();
    let seen = side_by_side(4, |index| {
        let loader = packed(|x| x).loader().part(Part::of(index / 2, 2)).guard(exchange.clone().host(index, 4));
        read(&mut loader.guard_timeout(SOON).build().unwrap(), 300)
    });
    assert!(seen.iter().all(|one| one.error.is_none() && one.batches == 300), "{seen:?}");
}

#[test]
fn another_deal_is_named() {
    let exchange = InMemory::new();
    let seen = side_by_side(2, |index| {
        let deal = if index == 0 { Deal::Even } else { Deal::Balanced(Balance::new(Cost::new(1, 1))) };
        let loader = packed(|x| x).loader().part(Part::of(index, 2)).deal(deal).guard(exchange.clone());
        read(&mut loader.guard_timeout(SOON).build().unwrap(), 3)
    });
    let (error, _) = told(&seen);
    assert!(error.starts_with("hosts disagree: rows are dealt as `Even` on host 0 and `Balanced("), "{error}");
}

/// One that never starts, and one that stops on the way. The hosts take turns on one thread, so each of the others has posted its
/// statement before the time-out of any begins to count.
#[test]
fn nobody_waits_for_ever() {
    for (stops, behind) in [(0, 0), (200, 384)] {
        let exchange = InMemory::new();
        let mut hosts = [0, 1, 2].map(|index| {
            let loader = packed(|x| x).loader().part(Part::of(index, 3)).guard(exchange.clone());
            loader.guard_timeout(Duration::from_millis(300)).executor(Executor::Inline).build().unwrap()
        });
        let mut errors = [None, None, None];
        // Once more than there are rounds to meet at: then both wait for host 1 alone.
        for _ in 0..4 {
            for (index, host) in hosts.iter_mut().enumerate() {
                while errors[index].is_none() && (index != 1 || host.delivered() < stops) {
                    match host.next_within(Duration::ZERO) {
                        Poll::Ready(batch) => errors[index] = batch.unwrap().err(),
                        Poll::Pending => break,
                    }
                }
            }
        }
        for index in [0, 2] {
            let error = errors[index].take().or_else(|| hosts[index].next().unwrap().err()).unwrap();
            let expected = format!("host 1 of 3 has sent nothing for 0 s: the other hosts are after batch {behind}");
            assert_eq!((error.to_string(), hosts[index].delivered()), (expected, behind), "host {index}");
        }
        assert!(errors[1].is_none());
    }
}

#[test]
fn a_host_that_fails_is_named_by_the_others() {
    let seen = hosts(3, |index| {
        let bad = move |x: i64| if index == 1 && x == 5000 { Err(Error::data("bad")) } else { Ok(x) };
        let ds = Range::new(0, 9_600).try_map(bad).filter(|_| true);
        ds.map(|x| Element::new().with("t", Array::scalar(x))).to_iter().batch(BATCH).boxed()
    });
    assert!(seen[1].error.as_deref().unwrap().ends_with("element 5000: bad"), "{seen:?}");
    for host in [0, 2] {
        let error = seen[host].error.as_deref().unwrap();
        assert!(
            error.starts_with("host 1 has failed at batch 416: ") && error.ends_with("element 5000: bad"),
            "{error}"
        );
        // A look between two rounds may come first.
        assert!((416..=640).contains(&seen[host].batches), "{seen:?}");
    }
}

/// The others read that between two rounds, and name it if they wait for that host in vain.
#[test]
fn a_host_that_closes_its_loader_early_is_named_by_the_others() {
    let exchange = InMemory::new();
    let mut hosts = [0, 1].map(|index| {
        let loader = packed(|x| x).loader().part(Part::of(index, 2)).guard(exchange.clone());
        loader.guard_timeout(Duration::from_millis(300)).executor(Executor::Inline).build().unwrap()
    });
    while hosts[0].delivered() < 3 || hosts[1].delivered() < 3 {
        for host in &mut hosts {
            if let Poll::Ready(batch) = host.next_within(Duration::ZERO) {
                batch.unwrap().unwrap();
            }
        }
    }
    let [mut first, second] = hosts;
    let delivered = second.delivered();
    drop(second);
    let error = first.find_map(Result::err).unwrap();
    let expected = format!("; host 1 has closed its loader after batch {delivered}");
    assert!(error.to_string().ends_with(&expected), "{error}");
    assert_eq!(first.delivered(), 256);
}

/// A consumer that looks up while it waits for others.
#[test]
fn a_wait_may_be_left_and_gone_on_with() {
    let exchange = InMemory::new();
    let host = |index| {
        packed(|x| x).loader().part(Part::of(index, 2)).guard(exchange.clone()).guard_timeout(SOON).build().unwrap()
    };
    let (mut first, mut second) = (host(0), host(1));
    for _ in 0..5 {
        assert!(first.next_within(Duration::from_millis(1)).is_pending());
    }
    assert!(second.next_within(Duration::ZERO).is_ready() || second.next().is_some());
    assert!(first.next().is_some_and(|batch| batch.is_ok()));
    let alone = packed(|x| x).loader().part(Part::of(0, 3)).guard(exchange.clone()).guard_timeout(Duration::ZERO);
    let mut alone = alone.build().unwrap();
    assert_eq!(alone.next().unwrap().unwrap_err().kind(), ErrorKind::Worker);
    assert!(alone.next().is_none());
}

/// A state of some hosts goes on in others, guarded at each start; one host with another state is found there.
#[test]
fn a_state_goes_on_by_other_hosts() {
    let mut whole = packed(|x| x).loader().part(Part::whole()).build().unwrap();
    let whole = read(&mut whole, u64::MAX);
    let (mut at, mut sum): (Option<Checkpoint>, _) = (None, RowDigest::default());
    for (count, steps) in [(4, 130), (2, 3), (3, 300), (1, 1), (6, u64::MAX)] {
        let exchange = InMemory::new();
        let done = side_by_side(count, |index| {
            let loader =
                packed(|x| x).loader().part(Part::of(index, count)).guard(exchange.clone()).guard_timeout(SOON);
            let loader = match &at {
                Some(state) => loader.resume(state.clone()),
                None => loader,
            };
            let mut loader = loader.build().unwrap();
            let seen = read(&mut loader, steps);
            assert_eq!(seen.error, None);
            (seen, loader.state().unwrap())
        });
        done.iter().for_each(|(seen, _)| sum.add(seen.digest));
        at = done.into_iter().next().map(|(_, state)| state);
    }
    assert_eq!((sum, at.as_ref().map(|state| state.delivered)), (whole.digest, Some(whole.batches)));

    let state = |batches| {
        let mut loader = packed(|x| x).loader().build().unwrap();
        assert_eq!(loader.by_ref().take(batches).filter_map(Result::ok).count(), batches);
        loader.state().unwrap()
    };
    let (early, late, exchange) = (state(3), state(4), InMemory::new());
    let seen = side_by_side(2, |index| {
        let at = if index == 0 { &early } else { &late };
        let loader = packed(|x| x).loader().part(Part::of(index, 2)).guard(exchange.clone()).guard_timeout(SOON);
        read(&mut loader.resume(at.clone()).build().unwrap(), 1).error
    });
    let expected = "hosts disagree: they are after batch 3 on host 0 and after batch 4 on host 1";
    assert_eq!(seen, [Some(expected.to_owned()), Some(expected.to_owned())]);
}

/// Hosts come and go and give steps back; each time those that are there meet anew.
#[test]
fn hosts_that_come_and_go_are_compared_with_those_there_are() {
    let exchange = InMemory::new();
    let start = |index, at: Option<Checkpoint>| {
        let loader = packed(|x| x).loader().part(Part::of(index, 3)).guard(exchange.clone()).guard_timeout(SOON);
        let loader = match at {
            Some(state) => loader.resume(state),
            None => loader,
        };
        loader.build().unwrap()
    };
    let mut hosts: Vec<_> = (0..3).map(|index| start(index, None)).collect();
    for (count, steps) in [(3, 5), (2, 140), (3, 300)] {
        if hosts[2].delivered() != hosts[0].delivered() {
            // The one that was away goes on from the state of the others.
            hosts[2] = start(2, hosts[0].state().ok());
        }
        std::thread::scope(|scope| {
            for (index, host) in hosts.iter_mut().enumerate().take(count) {
                scope.spawn(move || {
                    host.repart(Part::of(index, count)).unwrap();
                    assert_eq!(read(host, steps).error, None);
                    host.back(2).unwrap();
                    assert_eq!(read(host, 2).error, None);
                });
            }
        });
    }
    assert_eq!(hosts.iter().map(Loader::delivered).collect::<Vec<_>>(), [445; 3]);
    let report = hosts[2].report().to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("3 hosts agreed up to batch 256"), "{report}");
}

/// Two runs in one folder, the second with what the first has left there.
#[test]
fn hosts_may_speak_over_a_folder() {
    let temp = tempfile::tempdir().unwrap();
    for odd in [-1, 5000, -1] {
        let seen = side_by_side(2, |index| {
            let ds = packed(move |x| if index == 1 && x == odd { x + 1 } else { x });
            let guard = SharedFolder::new(temp.path().join("guard"));
            let loader = ds.loader().part(Part::of(index, 2)).guard(guard).guard_timeout(SOON);
            read(&mut loader.build().unwrap(), u64::MAX)
        });
        if odd < 0 {
            assert!(seen.iter().all(|one| one.error.is_none() && one.batches > 1000), "{seen:?}");
        } else {
            assert!(told(&seen).0.contains("is the first that differs between host 0 and host 1"));
        }
    }
}

#[test]
fn a_guard_needs_a_part() {
    let error = packed(|x| x).loader().guard(InMemory::new()).build().unwrap_err();
    assert!(error.message().contains("hosts cannot be compared without a part"), "{error}");
    let mut loader = packed(|x| x).loader().build().unwrap();
    assert!(loader.guard(InMemory::new()).is_err());
}

/// Hosts that evaluate their own rows alone have no content in common; what they have is compared all the same.
#[test]
fn of_batches_by_index_positions_are_compared() {
    let ds = |seed| {
        let number = |x: i64| Element::new().with("t", Array::scalar(x));
        Range::new(0, 400 * BATCH as i64).shuffle(seed).map(number).to_iter().batch(BATCH).boxed()
    };
    let seen = hosts(3, |_| ds(1));
    assert!(seen.iter().all(|one| one.error.is_none() && one.batches == 400), "{seen:?}");
    assert!(told(&hosts(3, |index| ds(1 + index as u32 / 2))).0.contains("stage 1 is `shuffle(seed=1)`"));
}
