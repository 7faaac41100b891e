//! Pipelines in worker processes: the data never changes, whatever happens to a worker.
#![cfg(all(feature = "workers", target_os = "linux"))]

#[path = "../support/cgroup.rs"]
mod cgroup;
#[path = "../support/children.rs"]
mod children;
#[path = "../support/tight.rs"]
mod tight;

mod any_number;
mod budget;
mod crashes;
mod ends;
mod excess;
mod failed_elements;
mod heaps;
mod keys;
mod lanes;
mod leases;
mod oom;
mod parts;
mod shapes;
mod strays;
mod streams;
mod units;
