//! Parallel work on the cores of the machine.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Result;
use crate::fork::{self, PerProcess};
use crate::sync::{Locked, Regardless};

/// Applies `work` to each of `items` on all cores. Returns the results in the order of the items.
pub(crate) fn map<T: Send, R: Send>(items: impl IntoIterator<Item = T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    map_on(0, items, work)
}

/// Runs [`map`] on `threads` threads if there are fewer cores, for work that waits more than it computes.
fn map_on<T: Send, R: Send>(
    threads: usize,
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let todo: Vec<Mutex<Option<T>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let done: Vec<Mutex<Option<R>>> = todo.iter().map(|_| Mutex::default()).collect();
    let each = |at: usize| {
        let item = todo[at].locked().take();
        let result = item.map(&work);
        *done[at].locked() = result;
    };
    match threads > rayon::current_num_threads() {
        true => for_each_on(threads, todo.len(), &each),
        false => for_each(todo.len(), &each),
    }
    done.into_iter().filter_map(|result| result.into_inner().regardless()).collect()
}

/// Applies fallible `work` to each of `items` on all cores. Items after a failed item may be left out.
///
/// # Errors
/// The error of the first item that fails, in the order of the items.
pub(crate) fn try_map<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    try_map_on(0, items, work)
}

/// Runs [`try_map`] on `threads` threads if there are fewer cores, for work that waits more than it computes.
///
/// # Errors
/// The error of the first item that fails, in the order of the items.
pub(crate) fn try_map_on<T: Send, R: Send>(
    threads: usize,
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let first_failed = AtomicUsize::new(usize::MAX);
    let results = map_on(threads, items.into_iter().enumerate(), |(at, item)| {
        if at > first_failed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let result = work(item).map(Some);
        if result.is_err() {
            first_failed.fetch_min(at, Ordering::Relaxed);
        }
        result
    });
    // Every item that was left out comes after an error.
    results.into_iter().filter_map(Result::transpose).collect()
}

/// Runs `work` for each number below `count`. This function is compiled once for all kinds of work.
///
/// Uses rayon's threads. A fork lacks these threads and would wait for them forever, so it uses other threads.
fn for_each(count: usize, work: &(dyn Fn(usize) + Sync)) {
    let all = || (0..count).into_par_iter().for_each(work);
    if let Some(threads) = of_fork() { threads.install(all) } else { all() }
}

/// Stack size in bytes of a thread that mostly waits.
pub(crate) const STACK: usize = 1 << 20;

/// Runs `work` for each number below `count`, in order, on `threads` threads including the calling thread.
///
/// The other threads end before the function returns.
fn for_each_on(threads: usize, count: usize, work: &(dyn Fn(usize) + Sync)) {
    let next = AtomicUsize::new(0);
    let all = || {
        while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < count) {
            work(at);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            let thread = std::thread::Builder::new().name("gristmill-opening".to_owned()).stack_size(STACK);
            // If the system refuses more threads, fewer threads do the work.
            if thread.spawn_scoped(scope, all).is_err() {
                break;
            }
        }
        all();
    });
}

/// Returns the threads of this process, if it is a fork. Panics if they cannot be started, because the parent's threads are missing.
fn of_fork() -> Option<&'static ThreadPool> {
    static THREADS: PerProcess<OnceLock<ThreadPool>> = PerProcess::new(OnceLock::new);
    fork::is_fork().then(|| {
        THREADS.get().get_or_init(|| {
            let threads = ThreadPoolBuilder::new().thread_name(|_| "gristmill-cores".to_owned());
            threads.build().expect("a thread can be started")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        assert_eq!(map(0..1000, |x: u64| x * x), (0..1000).map(|x| x * x).collect::<Vec<_>>());
        let mut words = vec![String::from("a"); 9];
        try_map(words.iter_mut().enumerate(), |(at, word)| {
            word.push_str(&at.to_string());
            Ok(())
        })
        .unwrap();
        assert_eq!(words[8], "a8");
        assert_eq!(map(Vec::<u8>::new(), |x| x), Vec::<u8>::new());
    }

    #[test]
    fn the_error_is_that_of_the_first_item_that_fails() {
        for _ in 0..50 {
            let failed = try_map(0..64, |x: u64| if x % 7 == 5 { Err(Error::data("bad").index(x)) } else { Ok(x) });
            assert_eq!(failed.unwrap_err().element_index(), Some(5));
        }
        assert_eq!(try_map(0..64, Ok).unwrap().len(), 64);
    }

    #[test]
    fn work_that_waits_is_done_on_more_threads_than_there_are_cores() {
        let threads = rayon::current_num_threads() + 7;
        let all_here = std::sync::Barrier::new(threads);
        // The barrier opens only if every thread waits at it.
        let done = try_map_on(threads, 0..threads as u64, |x| {
            all_here.wait();
            Ok(x)
        });
        assert_eq!(done.unwrap(), (0..threads as u64).collect::<Vec<_>>());
        for _ in 0..50 {
            let failed =
                try_map_on(threads, 0..64, |x: u64| if x % 7 == 5 { Err(Error::data("bad").index(x)) } else { Ok(x) });
            assert_eq!(failed.unwrap_err().element_index(), Some(5));
        }
    }
}
