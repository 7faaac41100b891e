//! Runs with planted delays and faults, whose reports name the cause. They measure, so the weekly tier runs them, each alone.

#[path = "../support/objects.rs"]
mod objects;

mod blame;
mod tuner;
mod verdict;
mod why;
