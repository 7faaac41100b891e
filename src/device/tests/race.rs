//! Checks that a slot is reused only after the plugin is done with it.

use super::*;
use crate::device::buffer::Release;

/// Sends 40 batches through one slot. Returns the number of batches that arrived with wrong data.
fn overwritten(client: &Client, release: Release) -> usize {
    let options = PutOptions { release, ..PutOptions::default().depth(1).slots(1).staging(Staging::Always) };
    let mut put = DevicePut::new(loader(batches(40, 64)), device_0(client), options).unwrap();
    let sent: Vec<_> = put.by_ref().map(Result::unwrap).collect();
    // Reads the batches before the slot is freed.
    let wrong = sent.iter().filter(|batch| number(batch) != Some(batch.index() as i64)).count();
    assert_eq!((sent.len(), put.stats().bytes_in_place), (40, 0));
    wrong
}

/// Shows that the test can fail: without the wait, later batches overwrite batches that were not yet read.
#[test]
fn without_the_wait_batches_are_overwritten() {
    assert!(overwritten(&client(&[("delay_us", 3000)]), Release::TooEarly) > 0);
}

#[test]
fn with_the_wait_no_batch_is_overwritten() {
    for client in [client(&[("delay_us", 1000)]), client(&[])].iter().chain(&real_clients()) {
        assert_eq!(overwritten(client, Release::WhenDone), 0, "{client:?}");
    }
}
