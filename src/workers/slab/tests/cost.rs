//! Cost of a lease, printed on request:
//! `cargo test --release --no-default-features --features workers --lib slab::tests::cost -- --ignored --nocapture`

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use crate::element::Buffer;
use crate::workers::slab::{PAGE, Slab};

fn cpu_time() -> Duration {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(times.split(' ').next().unwrap().parse().unwrap())
}

fn nanoseconds(name: &str, mut each: impl FnMut()) {
    const ROUNDS: u32 = 200_000;
    let best = (0..5).map(|_| {
        let start = cpu_time();
        (0..ROUNDS).for_each(|_| each());
        (cpu_time() - start).as_nanos() as f64 / f64::from(ROUNDS)
    });
    println!("{name}: {:.0} ns", best.fold(f64::INFINITY, f64::min));
}

#[test]
#[ignore = "a figure, not a check"]
fn grant_lease_and_return() {
    let slab = Slab::create(4096 * PAGE, 0, 1, || ()).unwrap();
    let part = || slab.grant(16 * PAGE, 0).unwrap();
    nanoseconds("process id", || {
        black_box(std::process::id());
    });
    nanoseconds("grant, return", || drop(black_box(part())));
    nanoseconds("grant, lease, return", || drop(black_box(part().into_lease(16 * PAGE).unwrap())));
    nanoseconds("grant, lease of a part, return", || drop(black_box(part().into_lease(9 * PAGE).unwrap())));
    nanoseconds("the same as a buffer", || {
        drop(black_box(Buffer::from_owner(Arc::new(part().into_lease(16 * PAGE).unwrap()))));
    });
    let mut queue: VecDeque<_> = (0..200).map(|_| part().into_lease(9 * PAGE).unwrap()).collect();
    nanoseconds("the same, with 200 leases of a part held", || {
        queue.push_back(part().into_lease(9 * PAGE).unwrap());
        drop(queue.pop_front());
    });
}
