//! Everything that needs neither worker processes, the command nor a server: one module for each promise.

#[path = "../support/browser.rs"]
mod browser;

mod ci;
mod device;
mod differences;
mod edits;
mod edits_exclude;
mod edits_mix;
mod edits_running;
mod edits_segments;
mod examples;
mod failed_elements;
mod fixtures;
mod floors;
mod golden;
mod guard;
mod keys;
#[cfg(feature = "spec")]
mod mutants;
mod official_readers;
mod parts;
mod pins;
mod places;
mod planned_deals;
mod planned_pages;
mod promises;
mod prose;
mod readme;
mod recording;
mod releases;
mod rules;
mod seeing;
mod tokenizers;
mod trace;
mod unsafe_ledger;
